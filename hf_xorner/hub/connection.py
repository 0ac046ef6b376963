"""Hub connectivity: reachability, retries, waits that the Hub asks for, and errors in one sentence."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from importlib import import_module
from threading import Thread
from typing import Any, TypeVar

from huggingface_hub import HfApi, constants, get_session
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled
from huggingface_hub.utils import hf_raise_for_status, parse_ratelimit_headers
from huggingface_hub.utils._http import default_client_factory

from ..errors import first_line

_Answer = TypeVar("_Answer")

_log = logging.getLogger(__name__)

# Seconds before each retry, and before those of the first request, whose answer is wanted soon.
_WAITS, _FIRST_WAITS = (0.3, 1.0, 2.0), (0.2, 0.4)
#: Seconds without a byte after which a request is given up; the client has no limit of its own.
SILENCE = 30.0
# The sum of the waits that the Hub may ask for, in seconds: its rate limits are for five minutes.
_LONGEST_WAIT = 300.0

#: The seconds to wait for a host's first answer, unless the variable HF_HUB_ETAG_TIMEOUT sets others.
_FIRST_ANSWER = 2.0
#: The hosts that a request was sent to, with the reason if there was no answer to the first one.
_hosts: dict[str, str] = {}

_TIMEOUT, _TOO_MANY, _MOVED, _SERVER, _UNAVAILABLE = 408, 429, 412, 500, 503


class _TooBusyError(Exception):
    """Raised if the Hub asks for longer waits than `_LONGEST_WAIT`."""


def _library_of(client: Any) -> Any:
    """Return httpx or httpx2, depending on the version of huggingface_hub."""
    return import_module(type(client).__module__.partition(".")[0])


def _transport_errors() -> type[Exception]:
    """Return the error of a request without an answer."""
    return _library_of(get_session()).TransportError


def reach(api: HfApi, seconds: float) -> dict[str, Any]:
    """Return the Hub's answer to `whoami`, or give up soon.

    Args:
        api: The client.
        seconds: The time limit of a request.

    Raises:
        ValueError: If there is no answer, or the token is invalid.
    """
    if constants.HF_HUB_OFFLINE:
        raise ValueError(
            "HF_HUB_OFFLINE keeps the client offline; unset it, or check without the Hub by --dry_run true."
        )

    try:
        # The thread's limit is the shorter one: the client would retry a request that timed out.
        with limited(2 * seconds):
            return patiently(lambda: _within(seconds, api.whoami), _FIRST_WAITS)
    except (NoAnswer, _transport_errors()) as error:
        raise ValueError(
            f"{api.endpoint} cannot be reached within {seconds:g} seconds ({first_line(error)}); check the connection, "
            "or check without the Hub by --dry_run true."
        ) from None
    except Exception as error:
        raise ValueError(f"{reason_of(error)}.") from error


def _within(seconds: float, call: Callable[[], _Answer]) -> _Answer:
    """Call, and raise `NoAnswer` after so many seconds.

    Resolving a name may block for longer than any time limit of the client, so the call runs in a daemon thread.
    """
    answer: Future[_Answer] = Future()

    def settle() -> None:
        try:
            answer.set_result(call())
        except Exception as error:
            answer.set_exception(error)

    Thread(target=settle, daemon=True).start()
    return answer.result(seconds)


def client() -> Any:
    """Return the usual client, for `set_client_factory`, but offline for hosts that do not answer the first request.

    The usual client retries for 24 seconds, or for minutes where packets get lost. As with HF_HUB_OFFLINE, files are
    taken from the local cache. After a first answer, errors are retried as usual.
    """
    usual: Any = default_client_factory()
    send = usual.send
    library = _library_of(usual)
    told = constants.HF_HUB_ETAG_TIMEOUT
    seconds = _FIRST_ANSWER if told == constants.DEFAULT_ETAG_TIMEOUT else told

    def send_first(request: Any, **options: Any) -> Any:
        origin = str(request.url.copy_with(path="/", query=None)).rstrip("/")
        if _hosts.get(origin) == "":
            return send(request, **options)
        if origin not in _hosts:
            try:
                answer = _within(seconds, lambda: send(request, **options))
            except (NoAnswer, library.TimeoutException):  # whichever limit comes first, this one or the request's own
                _hosts[origin] = "no answer in time; HF_HUB_ETAG_TIMEOUT sets the seconds to wait"
            except library.ConnectError as error:
                _hosts[origin] = first_line(error)
            except library.TransportError:  # the connection was made and broke
                _hosts[origin] = ""
                raise
            else:
                _hosts[origin] = ""
                return answer
        raise OfflineModeIsEnabled(f"{origin} cannot be reached ({_hosts[origin]})")

    usual.send = send_first
    return usual


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Limit the client to so many seconds of silence a request, and the Hub to `_LONGEST_WAIT` of requested waits.

    The client obeys a `Retry-After` of any length in some of its requests, and ignores it in others; a hook in its
    session sees all answers.
    """
    session = get_session()
    timeout, hooks, asked = session.timeout, session.event_hooks, 0.0

    def add(answer: Any) -> None:
        nonlocal asked
        asked += _requested_wait(answer) or 0.0
        if asked > _LONGEST_WAIT:
            answer.read()
            try:
                hf_raise_for_status(answer)
            except HfHubHTTPError as error:
                raise _TooBusyError from error

    session.timeout = seconds
    session.event_hooks = {**hooks, "response": [*hooks.get("response", ()), add]}
    try:
        yield
    finally:
        session.timeout, session.event_hooks = timeout, hooks


def _requested_wait(answer: Any) -> float | None:
    """Return the seconds that an answer of status 429 or 503 asks to wait, by `RateLimit` or `Retry-After`."""
    if answer is None or answer.status_code not in (_TOO_MANY, _UNAVAILABLE):
        return None
    limit = parse_ratelimit_headers(answer.headers)
    if limit is not None and limit.remaining == 0:
        return float(limit.reset_in_seconds)
    asked = answer.headers.get("Retry-After", "").strip()
    if asked.isdecimal():
        return float(asked)
    try:
        return max((parsedate_to_datetime(asked) - datetime.now(timezone.utc)).total_seconds(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None


def patiently(call: Callable[[], _Answer], waits: Sequence[float] = _WAITS) -> _Answer:
    """Call, and retry after errors that may be temporary, no sooner than the Hub asks."""
    for seconds in waits:
        try:
            return call()
        except Exception as error:
            if not (isinstance(error, _transport_errors()) or (isinstance(error, HfHubHTTPError) and _passes(error))):
                raise
            asked = _requested_wait(getattr(error, "response", None))
        if asked:
            _log.warning("The Hub asks to wait %.0f seconds.", asked)
        time.sleep(max(seconds, asked or 0.0))
    return call()


def _passes(error: HfHubHTTPError) -> bool:
    return _status_of(error) in (_TIMEOUT, _TOO_MANY) or _status_of(error) >= _SERVER


def _status_of(error: HfHubHTTPError) -> int:
    return error.response.status_code if error.response is not None else 0


def reason_of(error: BaseException) -> str:
    """Return in a few words, without a full stop, why a request failed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LocalTokenNotFoundError):
            return "there is no token to publish with; log in by `hf auth login`, or set HF_TOKEN"
        if isinstance(cause, HfHubHTTPError):
            return _reason_of_answer(cause)
        if isinstance(cause, _transport_errors()):
            return f"the connection to the Hub broke ({first_line(cause)}); try again"
        cause = cause.__cause__
    return " ".join(str(error).split()).rstrip(".")


def _reason_of_answer(error: HfHubHTTPError) -> str:
    status = _status_of(error)
    message = first_line(ValueError(error.server_message)) if error.server_message else f"status {status}"
    if asked := _requested_wait(error.response):
        return f"the Hub is busy (status {status}) and asks to wait {asked:.0f} seconds; try again then"
    if _passes(error):
        return f"Hub server error (status {status}, also after retries); try again later"
    return {
        401: f"the Hub does not know the token ({message}); log in by `hf auth login`, or set another HF_TOKEN",
        403: f"the token may not do that ({message}); use one with write access",
        _MOVED: "someone else has published there meanwhile; look at the repository, and try again",
    }.get(status, f"the Hub refuses it ({message})")
