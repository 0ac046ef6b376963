"""Hub connectivity: reachability, retries, waits that the Hub asks for, and errors in one sentence."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.utils import mktime_tz, parsedate_tz
from importlib import import_module
from threading import Thread
from typing import Any, TypeVar

from huggingface_hub import HfApi, constants, get_session
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
from huggingface_hub.utils import hf_raise_for_status, parse_ratelimit_headers

from ..errors import first_line

_Answer = TypeVar("_Answer")

_log = logging.getLogger(__name__)

#: Seconds before each further try.
WAITS = (0.3, 1.0, 2.0)
#: The same where an answer is wanted soon.
FIRST_WAITS = (0.2, 0.4)
#: Seconds without a byte after which a request is given up; the client itself would wait for ever.
SILENCE = 30.0
#: Seconds that the Hub may ask to wait, all times together: its limits count within five minutes.
LONGEST_WAIT = 300.0

_TIMEOUT, _TOO_MANY, _MOVED, _SERVER, _UNAVAILABLE = 408, 429, 412, 500, 503


class TooBusy(Exception):
    """Raised from the Hub's answer when it asks for longer waits than are granted."""


def transport_errors() -> type[Exception]:
    """Return what is raised where a request gets no answer: httpx's, or httpx2's where the client speaks through it."""
    return import_module(type(get_session()).__module__.partition(".")[0]).TransportError


def reach(api: HfApi, seconds: float) -> dict[str, Any]:
    """Ask the Hub who one is, and give up soon.

    The client tries again and again, and a name that cannot be resolved may block for long whatever the time limit; so
    the question is asked in a thread, which is left alone when its time is over.

    Args:
        api: The client.
        seconds: How long to wait for an answer; waits that the Hub asks for are not counted.

    Raises:
        ValueError: If there is no answer, or the answer is that the token is not known.
    """
    if constants.HF_HUB_OFFLINE:
        raise ValueError(
            "the client is told to stay offline (HF_HUB_OFFLINE); unset that; --dry_run true checks without the Hub."
        )
    left = seconds

    def ask() -> Any:
        nonlocal left
        answers: list[Any] = []
        thread = Thread(target=lambda: answers.append(_outcome(api.whoami)), daemon=True)
        start = time.monotonic()
        thread.start()
        thread.join(max(left, 0))
        left -= time.monotonic() - start
        if not answers:
            raise TimeoutError(f"no answer within {seconds:g} seconds")
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    try:
        # The thread's time is over first: a request that is given up would be tried again.
        with limited(2 * seconds):
            return dict(patiently(ask, FIRST_WAITS))
    except (TimeoutError, transport_errors()) as error:
        raise ValueError(
            f"{api.endpoint} cannot be reached ({first_line(error)}); look after the connection; "
            "--dry_run true checks without it."
        ) from None
    except Exception as error:
        raise ValueError(f"{reason_of(error)}.") from error


def _outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the exception that it raised."""
    try:
        return call()
    except Exception as error:
        return error


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Limit the client's patience: with silence for so many seconds a request, with `LONGEST_WAIT` of asked waits.

    The client obeys a `Retry-After` of any length in some of its requests, and in others knows none; a hook in its
    session sees all answers.
    """
    session = get_session()
    timeout, hooks, asked = session.timeout, session.event_hooks, 0.0

    def add(answer: Any) -> None:
        nonlocal asked
        asked += requested_wait(answer) or 0.0
        if asked > LONGEST_WAIT:
            answer.read()
            try:
                hf_raise_for_status(answer)
            except HfHubHTTPError as error:
                raise TooBusy from error

    session.timeout = seconds
    session.event_hooks = {**hooks, "response": [*hooks.get("response", ()), add]}
    try:
        yield
    finally:
        session.timeout, session.event_hooks = timeout, hooks


def requested_wait(answer: Any) -> float | None:
    """Return the seconds that an answer of status 429 or 503 asks to wait; None if it is another, or says nothing.

    The Hub says them as `RateLimit`, which its client can read, and servers before it as `Retry-After`.
    """
    if answer.status_code not in (_TOO_MANY, _UNAVAILABLE):
        return None
    limit = parse_ratelimit_headers(answer.headers)
    if limit is not None and limit.remaining == 0:
        return float(limit.reset_in_seconds)
    said = answer.headers.get("Retry-After", "").strip()
    if re.fullmatch("[0-9]+", said):
        return float(said)
    date = parsedate_tz(said)
    try:
        return max(mktime_tz(date) - time.time(), 0.0) if date else None
    except (ValueError, OverflowError):
        return None


def patiently(call: Callable[[], _Answer], waits: Sequence[float] = WAITS) -> _Answer:
    """Call, and call again, after the wait that the Hub asks for, if the error may be temporary."""
    for seconds in waits:
        try:
            return call()
        except Exception as error:
            if not passes(error):
                raise
            answer = error.response if isinstance(error, HfHubHTTPError) else None
            asked = requested_wait(answer) if answer is not None else None
        if asked:
            _log.warning("The Hub asks to wait %.0f seconds.", asked)
        time.sleep(max(seconds, asked or 0.0))
    return call()


def passes(error: Exception) -> bool:
    """Return whether an error may be temporary: of the connection, or of the server."""
    if isinstance(error, HfHubHTTPError):
        return status_of(error) in (_TIMEOUT, _TOO_MANY) or status_of(error) >= _SERVER
    return isinstance(error, transport_errors())


def status_of(error: HfHubHTTPError) -> int:
    """Return the status of an answer."""
    return error.response.status_code if error.response is not None else 0


def reason_of(error: BaseException) -> str:
    """Return in a few words, without a stop, what went wrong between the client and the Hub."""
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    if any(isinstance(one, LocalTokenNotFoundError) for one in chain):
        return "there is no token to publish with; log in by `hf auth login`, or set HF_TOKEN"
    answered = next((one for one in chain if isinstance(one, HfHubHTTPError)), None)
    if answered is not None:
        return _reason_of_answer(answered)
    broken = next((one for one in chain if isinstance(one, transport_errors())), None)
    if broken is not None:
        return f"the connection to the Hub broke ({first_line(broken)}); try again"
    return " ".join(str(error).split()).rstrip(".")


def _reason_of_answer(error: HfHubHTTPError) -> str:
    status = status_of(error)
    said = first_line(ValueError(error.server_message)) if error.server_message else f"status {status}"
    if status == 401:
        return f"the Hub does not know the token ({said}); log in anew by `hf auth login`, or set another HF_TOKEN"
    if status == 403:
        return f"the token may not do that ({said}); use one that may write there"
    if status == _MOVED:
        return "someone else has published there meanwhile; look at what stands there, and try again"
    if error.response is not None and (asked := requested_wait(error.response)):
        return f"the Hub is busy (status {status}) and asks to wait {asked:.0f} seconds; try again then"
    if status >= _SERVER or status in (_TIMEOUT, _TOO_MANY):
        return f"Hub server error (status {status}, also on a further try); try again later"
    return f"the Hub refuses it ({said})"
