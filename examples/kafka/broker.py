"""A Kafka for tests and examples: one node in KRaft mode on this machine, from its Maven artifacts.

::

    with Broker() as kafka:
        kafka.servers  # "127.0.0.1:40123"

Needs Java and, the first time, a Maven repository: the one that ``DEFAULT_ARTIFACT_REPOSITORY`` names (Spark reads it, too), or
the mirror in Maven's own ``settings.xml``. The jars are resolved with Ivy, which comes with PySpark, and kept in the user's cache
directory (``STRETTO_CACHE_DIR`` moves it).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import platformdirs

from stretto.errors import OptionError

__all__ = ["KAFKA", "Broker", "connector", "jars", "repository"]

#: The broker that :class:`Broker` starts.
KAFKA = "org.apache.kafka:kafka_2.13:4.2.1"

_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}" lockStrategy="artifact-lock-nio"/>
  <resolvers><ibiblio name="central" m2compatible="true" root="{repository}"/></resolvers>
</ivysettings>
"""

_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""

#: Longer than any broker takes to start on a machine that is busy.
_PATIENCE = 60.0
#: Seconds after which an artifact that could not be had is asked for again.
_RETRY = 3600.0


def _cache() -> Path:
    chosen = os.environ.get("STRETTO_CACHE_DIR")
    return (Path(chosen) if chosen else Path(platformdirs.user_cache_dir("stretto"))) / "maven"


def repository() -> str:
    """The address of the Maven repository that the user's settings name.

    Raises
    ------
    OptionError
        They name none; the message says how to.
    """
    named = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    settings = Path.home() / ".m2" / "settings.xml"
    if not named and settings.exists():
        # Elements have a namespace or none, as the file was written.
        mirrors = ElementTree.parse(settings).iterfind("{*}mirrors/{*}mirror/{*}url")
        named = next((url.text.strip() for url in mirrors if url.text), None)
    if not named:
        raise OptionError(
            "no Maven repository is known: name one in the environment variable DEFAULT_ARTIFACT_REPOSITORY, "
            f"or as a mirror in {settings}"
        )
    return named.rstrip("/") + "/"


def jars(*coordinates: str, transitive: bool = True) -> list[Path]:
    """The jars of Maven artifacts (``group:artifact:version``) with what they need, from the cache or the Maven repository.

    Raises
    ------
    OptionError
        There is no Java, no PySpark or no repository, or an artifact cannot be had; the message has Ivy's reason.
    """
    found: dict[str, Path] = {}
    for coordinate in coordinates:
        directory = _cache() / coordinate.replace(":", "_") / ("all" if transitive else "alone")
        if not (directory / "complete").exists():
            _not_just_tried(directory)
            _resolve(coordinate, directory, transitive)
        found.update({path.name: path for path in sorted(directory.glob("*.jar"))})
    return list(found.values())


def _not_just_tried(directory: Path) -> None:
    """Raise the error of an attempt that failed within the hour: each takes seconds, and tests make many."""
    note = directory.with_name("absent")
    if note.exists() and time.time() - note.stat().st_mtime < _RETRY:
        raise OptionError(note.read_text())


def _resolve(coordinate: str, directory: Path, transitive: bool) -> None:
    group, artifact, version = coordinate.split(":")
    root = repository()
    directory.parent.mkdir(parents=True, exist_ok=True)
    settings = directory.parent / f"ivysettings-{os.getpid()}.xml"
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=directory.parent))
    try:
        settings.write_text(_SETTINGS.format(cache=_cache() / "ivy", repository=escape(root)))
        pattern = f"{draft}/[artifact]-[revision](-[classifier]).[ext]"
        command = [_java(), "-cp", str(_ivy()), "org.apache.ivy.Main", "-settings", str(settings), "-confs", "default"]
        command += ["-dependency", group, artifact, version, "-types", "jar", "bundle", "-retrieve", pattern]
        command += [] if transitive else ["-notransitive"]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OptionError(f"cannot get {coordinate} from {root} ({error})") from error
        if answer.returncode != 0 or not any(draft.glob("*.jar")):
            said = [line.strip(" :") for line in answer.stdout.splitlines() if "not found" in line or "ERROR" in line]
            reason = next(iter(said), (answer.stderr or answer.stdout).strip()[-200:])
            message = f"cannot get {coordinate} from {root} ({reason})"
            directory.with_name("absent").write_text(message)
            raise OptionError(message)
        (draft / "complete").touch()
        if not (directory / "complete").exists():  # another process may have been first
            shutil.rmtree(directory, ignore_errors=True)
            draft.rename(directory)
    finally:
        settings.unlink(missing_ok=True)
        shutil.rmtree(draft, ignore_errors=True)


def _java() -> str:
    from stretto.spark.sessions import ensure_java

    ensure_java()
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _ivy() -> Path:
    from stretto.spark.sessions import require_pyspark

    require_pyspark()
    import pyspark

    found = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise OptionError("PySpark brings no Ivy to get Maven artifacts with")
    return found[-1]


def connector() -> list[Path]:
    """The jars of Spark's Kafka connector, for ``spark.jars``.

    Of the installed Spark's own version; where the repository has that one not in full, of an older one that is known to work
    (:data:`_FALLBACK`, tried with Spark 4.3.0).

    Raises
    ------
    OptionError
        Neither can be had.
    """
    from stretto.connectors.kafka import package

    try:
        return jars(package())
    except OptionError as first:
        try:
            return jars(*_FALLBACK, transitive=False)
        except OptionError as second:
            raise OptionError(f"{first}; {second}" if str(first) != str(second) else str(first)) from second


#: A connector and all that it needs beside Spark's own jars.
_FALLBACK = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)


class Broker:
    """A Kafka broker of its own, gone with the ``with`` block.

    Parameters
    ----------
    partitions
        How many partitions a topic has that is made by writing to it.
    version
        The Maven coordinates of the broker.

    Raises
    ------
    OptionError
        The artifacts cannot be had, or the broker does not start; the message ends with its last words.
    """

    def __init__(self, partitions: int = 2, version: str = KAFKA):
        self.partitions = partitions
        self.version = version
        self.port, self._controller = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: Path | None = None

    @property
    def servers(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Broker:
        path = os.pathsep.join(map(str, jars(self.version)))
        self._directory = Path(tempfile.mkdtemp(prefix="stretto-kafka-"))
        try:
            properties = self._directory / "server.properties"
            properties.write_text(
                _PROPERTIES.format(
                    port=self.port,
                    controller=self._controller,
                    logs=self._directory / "logs",
                    partitions=self.partitions,
                )
            )
            java = [_java(), "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path]
            self._format(java, properties)
            with (self._directory / "broker.log").open("wb") as log:
                self._process = subprocess.Popen(
                    [*java, "kafka.Kafka", str(properties)], stdout=log, stderr=subprocess.STDOUT
                )
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the broker and remove what it kept."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    @staticmethod
    def _format(java: Sequence[str], properties: Path) -> None:
        command = [*java, "kafka.tools.StorageTool", "format", "--standalone", "-t", "4L6g3nShT-eMCtK--X86sw"]
        answer = subprocess.run(
            [*command, "-c", str(properties)], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
        if answer.returncode != 0:
            raise OptionError(f"Kafka cannot format its storage: {(answer.stderr or answer.stdout)[-500:]}")

    def _wait(self) -> None:
        assert self._process is not None
        assert self._directory is not None
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        said = (self._directory / "broker.log").read_text(errors="replace")[-500:]
        raise OptionError(f"Kafka does not start: {said}")


def _free_ports(number: int) -> list[int]:
    """Ports that nobody listens on; held together, so that they differ."""
    probes = [socket.socket() for _ in range(number)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
