"""Exceptions named by the recovery that they demand; the runner handles each in exactly one place.

Owns the names only. Bad input is never an exception: it is a rejection or a dead letter. Messages are sentences for people, and
hold no argument values and no secrets.
"""


class Retryable(Exception):
    """Nothing is wrong that a pause does not cure: the partition is taken over again after one."""


class Fenced(Exception):
    """Another owner may be at work, or the fate of a commit is unknown.

    Ownership is checked, then producer, committed offset and state are made anew: nothing is sent again, and nothing goes on
    from memory (design section 7).
    """


class Poisoned(Exception):
    """This partition stops and the process is no longer ready; the other partitions go on."""

    def __init__(self, sentence: str, offset: int | None = None) -> None:
        """Say why, and the offset of the one record that is to blame, where it is known."""
        super().__init__(sentence)
        self.offset = offset


class Fatal(Exception):
    """The process cannot do its work and ends; each argument is one clear sentence."""

    def __str__(self) -> str:
        """All sentences, one after the other."""
        return " ".join(map(str, self.args))


class Unusable(Fatal):
    """Files that the settings name cannot be used."""


class Unreachable(Fatal):
    """No broker answers."""


class Refused(Fatal):
    """The broker answers, but not to this client: credentials, certificate, rights, or a protocol it does not speak there."""


class Unfit(Fatal):
    """Topics are missing, or are not what the guarantees need."""
