"""Why there is no broker: one sentence for a person, whom to blame in the name. Holds no logic."""


class BrokerUnavailable(RuntimeError):
    """Something is missing on this machine: the message says in one sentence what to install or set."""


class BrokerFailed(RuntimeError):
    """Everything was there, and Kafka did not start or died: the message ends with the last lines of its log."""
