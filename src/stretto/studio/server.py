"""The server of the studio: it gives the page to whoever has its token, and hands what the page asks to the workers.

Every request must name this machine as its host and bring the token, in a cookie that the first address sets, or in the header
``X-Stretto-Token``. So no other page that is open in the browser, and no other user of the machine, is answered.
"""

from __future__ import annotations

import json
import math
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stretto.errors import OptionError, StrettoError
from stretto.studio.folder import Folder
from stretto.studio.page import FILES, STATIC, require_page
from stretto.studio.saving import KINDS
from stretto.studio.topic import Topic
from stretto.studio.workbench import LONGEST, ROWS, as_error
from stretto.studio.worker import Worker, WorkerError

HEADER = "x-stretto-token"

#: Bytes of a request.
_LONGEST_REQUEST = 4 * LONGEST + 10_000

#: Nothing is loaded from elsewhere. CodeMirror writes its styles into the page.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

#: The calls of the page with the types of their arguments, and which worker answers: one that is quick, so that it can be asked while
#: another one runs a query, or a third one replays the events.
_CALLS: dict[str, tuple[str, Mapping[str, type]]] = {
    "events": ("quick", {"offset": int, "count": int}),
    "check": ("quick", {"text": str}),
    "explain": ("quick", {"text": str}),
    "draw": ("quick", {"text": str}),
    "run": ("runs", {"text": str}),
    "why_not": ("runs", {"text": str}),
    "why_event": ("runs", {"text": str, "event": int}),
    "page": ("runs", {"offset": int, "count": int}),
    "step": ("runs", {"text": str, "count": int}),
    "read_on": ("replay", {"up_to": float, "more": int, "replay": int}),
    "put_pattern": ("replay", {"name": str, "text": str, "replay": int}),
    "end_live": ("replay", {"replay": int}),
}


@dataclass
class Studio:
    """What a server has: the folder, the file or topic and the roles to begin with, and the bounds of a call.

    One file is open at a time. Each opening has a number, which calls repeat, so that a page whose file another page has replaced is
    told so, and is not shown events of the other file. The same holds for replays, of which there is one at a time.
    """

    folder: Folder
    data: str | None = None
    roles: dict[str, str | None] = field(default_factory=dict)
    #: Types of columns of the file to begin with.
    types: dict[str, str] = field(default_factory=dict)
    #: The one topic that may be opened; ``data`` is its address.
    topic: Topic | None = None
    rows: int = ROWS
    seconds: float = 30.0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    workers: dict[str, Worker] = field(default_factory=lambda: {name: Worker() for name in ("quick", "runs", "replay")})
    opened: int = 0
    replays: int = 0
    current: str | None = None
    _asked: dict[str, Any] = field(default_factory=dict)
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _spool: TemporaryDirectory[str] = field(default_factory=lambda: TemporaryDirectory(prefix="stretto-studio-"))

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers.values():
            worker.close()
        self._spool.cleanup()

    def begin(self) -> dict[str, Any]:
        """What the page needs to begin: the files of the folder, the one that is chosen, and its roles."""
        return {
            "files": [*([] if self.topic is None else [self.topic.address]), *self.folder.data_files()],
            "data": self.data,
            "roles": self.roles,
            "topic": None if self.topic is None else {"address": self.topic.address, "starting": self.topic.starting},
            "kinds": KINDS,
            "rows": self.rows,
        }

    def open(self, data: str, roles: dict[str, Any]) -> Any:
        """Open a file of the folder, or the topic, in both workers; the answer has the opening's number as ``opened``."""
        with self._opening:
            asked, passed = self._sampled(data, roles)
            found = self.workers["quick"].ask("open", asked, self.seconds)  # where it fails, the file before stays open
            self.opened += 1
            self.current, self._asked = data, asked
            self._end_replay()
            self.workers["runs"].ask("open", asked, self.seconds)
            more = found["more"] or (passed is not None and passed["more"])
            return {**found, "more": more, "passed": passed, "opened": self.opened}

    def _sampled(self, data: str, roles: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """What workers are asked to open, and of a topic how many records its sample does not have."""
        if self.topic is None or data != self.topic.address:
            types = self.types if data == self.data else {}
            return {"path": str(self.folder.data(data)), "roles": roles, "rows": self.rows, "types": types}, None
        topic, into = asdict(self.topic), Path(self._spool.name) / f"{self.opened + 1}.arrow"
        asked = {"topic": topic, "rows": self.rows, "time": str(roles.get("time") or ""), "into": str(into)}
        passed = self.workers["quick"].ask("sample", asked, self.seconds)
        return {"path": str(into), "roles": roles, "rows": self.rows, "topic": topic}, passed

    def begin_replay(self, opened: int, **arguments: Any) -> Any:
        """Begin a replay in the place of the one before; the answer has its number as ``replay``."""
        self._require(opened)
        with self._opening:
            self.replays += 1
            worker = self.workers["replay"]
            worker.ask("open", self._asked, self.seconds)
            return worker.ask("begin_replay", arguments, self.seconds) | {"replay": self.replays}

    def end_replay(self, replay: int) -> None:
        """End a replay, if another one has not begun since."""
        with self._opening:
            if replay == self.replays:
                self._end_replay()

    def _end_replay(self) -> None:
        self.replays += 1
        self.workers["replay"].close("the replay has ended")

    def save(self, kind: str, text: str, name: str, replace: bool, opened: int) -> dict[str, str]:
        """Write the query into the folder; with no name, only give the text that would be written."""
        self._require(opened)
        asked = {"kind": kind, "text": text, "data": self.current}
        made = self.workers["quick"].ask("written", asked, self.seconds)
        return {
            "text": made,
            "name": self.folder.write(name, made, ending=KINDS[kind], replace=replace) if name else "",
        }

    def ask(self, call: str, opened: int, arguments: dict[str, Any]) -> Any:
        """The answer of a worker."""
        self._require(opened)
        if arguments.pop("replay", self.replays) != self.replays:
            raise OptionError("the replay has ended, or another page has begun one: begin it again")
        return self.workers[_CALLS[call][0]].ask(call, arguments, self.seconds)

    def _require(self, opened: int) -> None:
        if not self.opened:
            raise OptionError("no events are open: choose a file")
        if opened != self.opened:
            raise OptionError("another page has opened a file since: choose the file again, or reload this page")


def application(studio: Studio, hosts: frozenset[str]) -> ASGIApp:
    """The server as an ASGI application; ``hosts`` are the names under which it may be asked, such as ``127.0.0.1:8765``."""

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            return PlainTextResponse("there is no such file", 404)
        return FileResponse(STATIC / name)

    async def begin(request: Request) -> Response:
        return await _answered(studio.begin)

    async def open_(request: Request) -> Response:
        given = await _arguments(request, {"data": str, "roles": dict})
        return await _answered(lambda: studio.open(**given))

    async def begin_replay(request: Request) -> Response:
        given = await _arguments(request, {"patterns": dict, "live": bool, "disorder": str, "opened": int})
        return await _answered(lambda: studio.begin_replay(**given))

    async def end_replay(request: Request) -> Response:
        given = await _arguments(request, {"replay": int})
        return await _answered(lambda: studio.end_replay(**given))

    async def save(request: Request) -> Response:
        given = await _arguments(request, {"kind": str, "text": str, "name": str, "replace": bool, "opened": int})
        return await _answered(lambda: studio.save(**given))

    async def cancel(request: Request) -> Response:
        await _arguments(request, {})
        return await _answered(studio.workers["runs"].cancel)

    async def call(request: Request) -> Response:
        name = request.path_params["call"]
        if name not in _CALLS:
            return _error(f"there is no call '{name}'", 404)
        given = await _arguments(request, {**_CALLS[name][1], "opened": int})
        return await _answered(lambda: studio.ask(name, given.pop("opened"), given))

    async def refuse(request: Request, error: Exception) -> Response:
        return _error(str(error), 400)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        studio.close()

    routes = [
        Route("/", page),
        Route("/static/{name}", file),
        Route("/api/begin", begin),
        Route("/api/open", open_, methods=["POST"]),
        Route("/api/begin_replay", begin_replay, methods=["POST"]),
        Route("/api/end_replay", end_replay, methods=["POST"]),
        Route("/api/save", save, methods=["POST"]),
        Route("/api/cancel", cancel, methods=["POST"]),
        Route("/api/{call}", call, methods=["POST"]),
    ]
    inner = Starlette(routes=routes, exception_handlers={BadRequest: refuse}, lifespan=lifespan)
    return Guard(inner, studio.token, hosts)


class BadRequest(Exception):
    """A request that is none of the page's."""


class Guard:
    """Lets through what names this machine as its host and brings the token."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app, self._token, self._hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the studio has no other protocol

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                made = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *made]
            await send(message)

        request = Request(scope)
        answer = self._refused(request)
        await (self._app if answer is None else answer)(scope, receive, with_headers)

    def _refused(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts or (origin is not None and origin != f"http://{host}"):
            return PlainTextResponse("this address is not the studio's", 403)
        cookie = f"stretto-studio-{host.rpartition(':')[2]}"
        given = request.headers.get(HEADER) or request.cookies.get(cookie) or ""
        if secrets.compare_digest(given.encode(), self._token.encode()):
            return None
        asked = request.query_params.get("token", "")
        if request.url.path == "/" and secrets.compare_digest(asked.encode(), self._token.encode()):
            welcome = RedirectResponse("/", 303)  # so that the token stands in no history
            welcome.set_cookie(cookie, self._token, httponly=True, samesite="strict")
            return welcome
        return PlainTextResponse("open the address that 'stretto studio' has printed: it has the token", 403)


async def _arguments(request: Request, types: Mapping[str, type]) -> dict[str, Any]:
    """The arguments of a call: an object of JSON with exactly these names and types."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise BadRequest("the content must be application/json")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST_REQUEST:
            raise BadRequest(f"a request of more than {_LONGEST_REQUEST:,} bytes is refused")
    try:
        given = json.loads(body)
        json.dumps(given, ensure_ascii=False).encode()  # half a character, "\ud800", is none
    except (ValueError, RecursionError) as error:
        raise BadRequest("the content is no JSON") from error
    if not isinstance(given, dict) or set(given) != set(types):
        raise BadRequest(f"expected an object with {', '.join(types) or 'nothing'}")
    for name, kind in types.items():
        if type(given[name]) is int and kind is float:  # JavaScript writes 5.0 as 5
            given[name] = float(given[name]) if abs(given[name]) < 2**63 else math.inf
        if type(given[name]) is not kind:
            raise BadRequest(f"'{name}' must be of type {kind.__name__}")
    return given


async def _answered(call: Callable[[], Any]) -> Response:
    """What a call gives, as JSON; its error with status 422."""
    try:
        return JSONResponse(await run_in_threadpool(call))
    except WorkerError as error:
        return JSONResponse({"error": error.error}, 422)
    except StrettoError as error:
        return JSONResponse({"error": as_error(error)}, 422)


def _error(message: str, status: int) -> Response:
    return JSONResponse({"error": {"kind": "BadRequest", "message": message}}, status)


def serve(studio: Studio, port: int, *, browser: bool, tell: Callable[[str], None]) -> None:
    """Serve until it is interrupted.

    Parameters
    ----------
    studio
        What is served.
    port
        The port of 127.0.0.1; 0: any that is free.
    browser
        Open the page in the browser.
    tell
        Called with the page's address, which has the token.

    Raises
    ------
    OptionError
        The port is taken, or the page was not built.
    """
    require_page()
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            listening.listen()  # before anyone is told the address
        except OSError as error:
            raise OptionError(
                f"port {port} cannot be used: {error.strerror}; --port 0 takes one that is free"
            ) from error
        own = listening.getsockname()[1]
        hosts = frozenset({f"127.0.0.1:{own}", f"localhost:{own}"})
        address = f"http://127.0.0.1:{own}/?token={studio.token}"
        tell(address)
        if browser:
            webbrowser.open(address)
        config = uvicorn.Config(
            application(studio, hosts), log_level="warning", access_log=False, timeout_graceful_shutdown=1
        )
        uvicorn.Server(config).run(sockets=[listening])
