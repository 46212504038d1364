"""Settings: sources and their order, units, and faults reported together (design section 10)."""

from pathlib import Path

import pytest

from processor.config import ConfigError, Settings, load
from processor.settings import Setting, catalogue

NAMES = [
    "release",
    "tools",
    "schemas",
    "mode",
    "tolerate",
    "engine",
    "arguments",
    "stream_timeout",
    "closed_memory",
    "max_argument_bytes",
    "max_argument_depth",
    "max_calls",
    "max_response_bytes",
    "max_streams",
    "commit_interval",
    "delivery",
    "group",
    "topics.events",
    "topics.approved",
    "topics.rejected",
    "topics.dead_letter",
    "kafka.bootstrap_servers",
    "http.host",
    "http.port",
    "workers",
]


def faults(*sets: str, environ: dict[str, str] | None = None, path: Path | None = None) -> list[str]:
    """The sentences of what is wrong."""
    with pytest.raises(ConfigError) as caught:
        load(path, environ, sets)
    return [str(fault) for fault in caught.value.faults]


def test_names_of_the_design_exist() -> None:
    """Section 10: the names that other tools rely on are settings."""
    assert {setting.key for setting in catalogue()}.issuperset(NAMES)


def test_defaults_are_those_of_the_design() -> None:
    """Sections 4 and 10: the documented defaults hold with no source at all."""
    bounds = load().bounds()
    assert (bounds.release, bounds.stream_timeout_ms, bounds.closed_memory_ms) == ("response", 1_200_000, 120_000)
    assert (bounds.max_calls, bounds.max_argument_bytes, bounds.max_response_bytes) == (128, 1 << 20, 8 << 20)
    assert bounds.max_streams == 100_000
    assert load() == Settings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "c.toml",
            'stream_timeout = "5m"\ntolerate = ["status_absent"]\n[kafka]\nbootstrap_servers = "a:1,b:2"\n[http]\nport = 0\n',
        ),
        ("c.yaml", "stream_timeout: 5m\ntolerate: [status_absent]\nkafka: {bootstrap_servers: [a:1, b:2]}\nhttp:\n  port: 0\n"),
        ("d.yaml", "stream_timeout: 5m\ntolerate: status_absent\nkafka.bootstrap_servers: a:1, b:2\nhttp.port: 0\n"),
    ],
)
def test_file(tmp_path: Path, name: str, text: str) -> None:
    """TOML and YAML say the same, nested or dotted."""
    path = tmp_path / name
    path.write_text(text)
    settings = load(path)
    assert settings.stream_timeout_ms == 300_000
    assert settings.tolerate == ("status_absent",)
    assert settings.kafka.bootstrap_servers == ("a:1", "b:2")
    assert settings.http.port == 0


def test_order_of_sources(tmp_path: Path) -> None:
    """The environment is above the file, `--set` above both."""
    path = tmp_path / "c.toml"
    path.write_text('group = "file"\nmax_calls = 1\nmode = "observe"\n')
    settings = load(path, {"CALLGATE_GROUP": "env", "CALLGATE_MAX_CALLS": "2"}, ["group=set"])
    assert (settings.group, settings.max_calls, settings.mode) == ("set", 2, "observe")


@pytest.mark.parametrize("name", ["CALLGATE_KAFKA_BOOTSTRAP_SERVERS", "CALLGATE_KAFKA__BOOTSTRAP_SERVERS"])
def test_nested_environment(name: str) -> None:
    """A nested name is written with one or two underscores."""
    assert load(None, {name: "h:9"}).kafka.bootstrap_servers == ("h:9",)


def test_all_faults_at_once(tmp_path: Path) -> None:
    """Every fault of every source is reported, with its source, in one go."""
    path = tmp_path / "c.toml"
    path.write_text('stream_timout = "5m"\nmax_calls = "many"\n')
    found = faults("engine=quick", "nothing", environ={"CALLGATE_STREAM_TIMEOUT": "20", "CALLGATE_WHAT": "1"}, path=path)
    assert len(found) == 6
    assert f"{path}: `stream_timout` is no setting; did you mean `stream_timeout`?" in found
    assert f"{path}: `max_calls` must be a whole number of 1 or more." in found
    assert "environment: `CALLGATE_WHAT` is no setting." in found
    assert any(each.startswith("environment: `CALLGATE_STREAM_TIMEOUT` must be a time with its unit") for each in found)
    assert any(each.startswith("--set: `engine` must be one of") for each in found)
    assert "--set: `nothing` has no value; write key=value." in found


def test_foreign_environment_is_left_alone() -> None:
    """What Kubernetes sets for a Service called callgate, and what points tests elsewhere, is no fault."""
    environ = {
        "CALLGATE_SERVICE_HOST": "10.0.0.1",
        "CALLGATE_PORT": "tcp://10.0.0.1:9464",
        "CALLGATE_PORT_9464_TCP_ADDR": "10.0.0.1",
        "CALLGATE_METRICS_SERVICE_PORT_HTTP": "9464",
        "CALLGATE_TEST_BOOTSTRAP": "x:1",
        "CALLGATE_CONFIG": "c.toml",
        "HOME": "/",
    }
    assert load(None, environ) == Settings()


@pytest.mark.parametrize(
    ("text", "expected"), [("20m", 1_200_000), ("500ms", 500), ("1h30m", 5_400_000), ("1.5s", 1_500), ("2 d", 172_800_000)]
)
def test_durations(text: str, expected: int) -> None:
    """Times carry their unit."""
    assert load(sets=[f"stream_timeout={text}"]).stream_timeout_ms == expected


@pytest.mark.parametrize("text", ["20", "", "m", "-5m", "0s", "5 minutes", "1e3s", "5m!"])
def test_bad_durations(text: str) -> None:
    """A time without a unit, or of no length, is a fault."""
    assert len(faults(f"stream_timeout={text}")) == 1


@pytest.mark.parametrize(("text", "expected"), [("1MiB", 1 << 20), ("512 KiB", 1 << 19), ("1000", 1000), ("1kB", 1000)])
def test_bytes(text: str, expected: int) -> None:
    """Bytes are numbers, or carry a unit."""
    assert load(sets=[f"max_argument_bytes={text}"]).max_argument_bytes == expected


@pytest.mark.parametrize("text", ["1XB", "-1", "0", "1.5MiB", "true", "many"])
def test_bad_bytes(text: str) -> None:
    """Anything else is a fault."""
    assert len(faults(f"max_argument_bytes={text}")) == 1


def test_secrets_stay_secret(tmp_path: Path) -> None:
    """Secrets come as text or from files, read anew each time, and no representation shows them."""
    path = tmp_path / "password"
    path.write_text("hunter2\n")
    settings = load(sets=[f"kafka.sasl_password_file={path}", "kafka.ssl_password=hunter3"])
    assert settings.kafka.sasl_password.reveal() == "hunter2"
    assert settings.kafka.ssl_password.reveal() == "hunter3"
    assert "hunter" not in repr(settings)
    path.write_text("rotated")
    assert settings.kafka.sasl_password.reveal() == "rotated"


def test_secret_table(tmp_path: Path) -> None:
    """A file may name a secret's file in a table, and a higher source takes its place."""
    (tmp_path / "s").write_text("one")
    config = tmp_path / "c.yaml"
    config.write_text(f"kafka: {{sasl_password: {{file: {tmp_path / 's'}}}}}\n")
    assert load(config).kafka.sasl_password.reveal() == "one"
    assert load(config, {"CALLGATE_KAFKA_SASL_PASSWORD": "two"}).kafka.sasl_password.reveal() == "two"


def test_secret_faults_do_not_tell(tmp_path: Path) -> None:
    """No message repeats a secret: neither of a bad file nor of a broken one."""
    config = tmp_path / "c.toml"
    config.write_text('[kafka]\nsasl_password = "hunter2" x\n')
    yaml = tmp_path / "c.yaml"
    yaml.write_text("kafka: {sasl_password: [hunter2}\n")
    assert "hunter" not in "".join(faults(path=config) + faults(path=yaml) + faults("kafka.sasl_password_file=hunter2"))
    for broken in (
        "*hunter2",
        "!hunter2 x",
        "%hunter2",
        '"\\hunter2"',
        "hunter2: hunter2: x",
        "[hunter2}",
        "&hunter2 *hunter3",
    ):
        yaml.write_text(f"kafka:\n  sasl_password: {broken}\n")
        (fault,) = faults(path=yaml)
        assert "at line 2, column" in fault
        assert "hunter" not in fault
    for broken in (
        "hunter2",
        '"hunter2',
        '"\\hunter2"',
        "[hunter2",
        '{hunter2="a",hunter2="b"}',
        "'hunter2' hunter2",
        "0xhunter2",
    ):
        config.write_text(f"[kafka]\nsasl_password = {broken}\n")
        (fault,) = faults(path=config)
        assert "not TOML: " in fault
        assert "hunter" not in fault
    assert len(faults(f"kafka.sasl_password_file={tmp_path}", "kafka.sasl_password=x")) == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.toml", "group = apac\n", "the file is not TOML: no value stands there (texts need quotes), at line 1, column 9."),
        ("c.toml", "[kafka\n", "the file is not TOML: a section without its `]`, at line 1, column 7."),
        ("c.toml", "group\n", "the file is not TOML: a name without `=`, at line 1, column 6."),
        ("c.toml", 'group = "a"\ngroup = "b"\n', "the file is not TOML: a name comes twice, at line 2, column 12."),
        ("c.toml", "[kafak]\nx = 1\n", "`[kafak]` is no section; did you mean `[kafka]`?"),
        ("c.yaml", "zzz: {x: 1}\n", "`[zzz]` is no section."),
        ("c.yaml", "group: [a\n", "the file is not YAML: "),
    ],
)
def test_faults_have_their_cause(tmp_path: Path, name: str, text: str, said: str) -> None:
    """A broken file is told with cause and place, an unknown section with the one that was meant."""
    path = tmp_path / name
    path.write_text(text)
    (fault,) = faults(path=path)
    assert fault.startswith(f"{path}: {said}")


def test_lists_are_told_how_to_be_written() -> None:
    """A list in a form that is none says the forms that are."""
    (fault,) = faults("allow=[refund]")
    assert fault == '--set: `allow` must be a list of texts: write `refund,other` or `["refund", "other"]`.'
    assert load(sets=["allow=refund,other"]).allow == load(sets=['allow=["refund", "other"]']).allow == ("refund", "other")


def test_a_secret_file_that_is_not_there(tmp_path: Path) -> None:
    """The path is named, where it can only be a path, and why it cannot be read."""
    (fault,) = faults(f"kafka.sasl_password_file={tmp_path / 'none'}")
    assert fault.endswith(f"names `{tmp_path / 'none'}`, which cannot be read: No such file or directory.")


@pytest.mark.parametrize("name", ["c.json", "missing.toml"])
def test_unreadable_file(tmp_path: Path, name: str) -> None:
    """A file of another kind, or none, is one fault that names it."""
    assert len(faults(path=tmp_path / name)) == 1


@pytest.mark.parametrize("content", [b"\xff", b"- a\n- b\n", b"a: [", b"topics: 3\n", b"1: 2\n", b"topics: {events: {x: 1}}\n"])
def test_broken_yaml(tmp_path: Path, content: bytes) -> None:
    """Broken or strange content is a fault, never a traceback."""
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    assert len(faults(path=path)) == 1


def test_empty_yaml(tmp_path: Path) -> None:
    """An empty file sets nothing."""
    path = tmp_path / "c.yaml"
    path.write_text("# nothing\n")
    assert load(path) == Settings()


@pytest.mark.parametrize(
    "sets",
    [
        ["engine=fastjsonschema", "tools=stream"],
        ["topics.approved=x", "topics.rejected=x"],
        ["kafka.ssl_certfile=c.pem"],
        ["kafka.security_protocol=SASL_SSL"],
        ["kafka.security_protocol=SASL_SSL", "kafka.sasl_mechanism=OAUTHBEARER"],
        ["kafka.session_timeout=3s"],
        ["commit_interval=2m"],
    ],
)
def test_settings_that_do_not_go_together(sets: list[str]) -> None:
    """Section 6 and common sense: contradictions are faults at the start."""
    assert [each.split(":")[0] for each in faults(*sets)] == ["settings"]


@pytest.mark.parametrize("setting", list(catalogue()), ids=lambda setting: setting.key)
def test_defaults_can_be_written(setting: Setting) -> None:
    """Every default, written as documented, is read back as itself; every meaning is a sentence."""
    assert setting.meaning.endswith(".")
    if shown := setting.kind.show(setting.default):
        assert setting.kind.parse(shown.strip('"')) == setting.default
