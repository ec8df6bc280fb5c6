import base64
import time
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import httpx
from models import (
    AccessToken,
    ApiError,
    CreateUploadResponse,
    DoneEvent,
    ErrorCode,
    ExchangeApiKeyRequest,
    GetBalanceResponse,
    NewUpload,
    PageMessage,
    PageModel,
    PageRunSummary,
    PageSession,
    Run,
    RunEvent,
    RunStart,
    RunStarted,
    RunStatus,
    TokenEvent,
    Upload,
    UploadStatus,
)
from pydantic import BaseModel

from support import api_key, base_url, check, expect, file_text, frames_of, nowhere, play, step

Answer = TypeVar("Answer", bound=BaseModel)

http = httpx.Client(base_url=f"{base_url}/api/v1")
ids: dict[str, UUID] = {}
answers: list[str] = []
times: list[datetime] = []


def get(model: type[Answer], path: str, status: int = 200) -> Answer:
    """What is there, read by its model: a wrong type or a missing field raises."""
    answer = http.get(path)
    check(answer.status_code == status, f"{path} answers {status}")
    return model.model_validate_json(answer.content)


def post(model: type[Answer], path: str, body: BaseModel) -> Answer:
    content = body.model_dump_json(exclude_unset=True)
    answer = http.post(path, content=content, headers={"content-type": "application/json"})
    check(answer.is_success, f"{path} answers {answer.status_code}")
    return model.model_validate_json(answer.content)


@step
def sign_in() -> None:
    token = post(AccessToken, "/auth/token", ExchangeApiKeyRequest(api_key=api_key))
    check(token.token_type == "Bearer" and token.expires_in > 0, "the token is a bearer token")
    http.headers["authorization"] = f"Bearer {token.access_token}"


@step
def models() -> None:
    defaults = [model for model in get(PageModel, "/models").items if model.is_default]
    check(len(defaults) == 1, "there is one default model")
    check(defaults[0].price.input_per_1k >= 0, "it has a price")


@step
def balance() -> None:
    found = get(GetBalanceResponse, "/balance")
    check(found.balance > 0, "there are credits")
    check(found.available == found.balance - found.held, "the balance adds up")


@step
def begin() -> None:
    started = post(RunStarted, "/chat", RunStart(message="Hello"))
    check(
        started.status == RunStatus.running and not started.resumed, "the run is new and running"
    )
    ids["run"] = expect(UUID, started.run_id)
    ids["session"] = expect(UUID, started.session_id)


@step
def events() -> None:
    frames = frames_of(http.get(f"/runs/{ids['run']}/events").text)
    found = [RunEvent.model_validate(frame).root for frame in frames]
    text = "".join(event.data.text for event in found if isinstance(event, TokenEvent))
    last = expect(DoneEvent, found[-1])
    check(text != "", "the answer has a text")
    answers.append(text)
    check(last.data.status == "done", "the run is done")
    check(last.data.session_id == ids["session"], "the last event names the session")


@step
def outcome() -> None:
    run = get(Run, f"/runs/{ids['run']}")
    check(run.status == RunStatus.done and run.answer == answers[0], "the run has that answer")
    check(run.usage is not None and run.usage.total_tokens > 0, "it used tokens")
    times.append(expect(datetime, run.created_at))


@step
def runs_since() -> None:
    query = httpx.QueryParams({"status": "done", "from": times[0].isoformat()})
    found = [run.run_id for run in get(PageRunSummary, f"/runs?{query}").items]
    check(found == [ids["run"]], "the run is found by its time")


@step
def messages() -> None:
    found = get(PageMessage, f"/sessions/{ids['session']}/messages")
    roles = [message.role for message in found.items]
    check(roles == ["user", "assistant"], "there is a question and an answer")


@step
def sessions() -> None:
    session = get(PageSession, "/sessions").items[0]
    check(session.id == ids["session"] and session.active_run_id is None, "the session is idle")


@step
def pages() -> None:
    post(RunStarted, "/chat", RunStart(message="Another one"))
    first = get(PageSession, "/sessions?limit=1")
    rest = get(PageSession, f"/sessions?limit=1&cursor={expect(str, first.next_cursor)}")
    check(len(first.items) == 1, "a page has as many items as were asked for")
    check(rest.items[0].id == ids["session"], "the pages follow each other")
    check(rest.next_cursor is None, "the last page has no cursor")


@step
def upload() -> None:
    content = base64.b64encode(file_text.encode()).decode()
    new = NewUpload(filename="notes.md", mime="text/markdown", content_base64=content)
    made = post(CreateUploadResponse, "/uploads", new)
    state = get(Upload, f"/uploads/{made.upload_id}")
    while state.status == UploadStatus.parsing:
        time.sleep(0.05)
        state = get(Upload, f"/uploads/{made.upload_id}")
    check((state.text or "").strip() == file_text.strip(), "the text of the file is there")
    raw = http.get(f"/uploads/{made.upload_id}/raw")
    check(raw.content == file_text.encode(), "the file is as it was")


@step
def not_found() -> None:
    error = get(ApiError, f"/sessions/{nowhere}", status=404)
    check(error.code == ErrorCode.NOT_FOUND, "the code is NOT_FOUND")
    check(error.request_id != "", "the error names its request")


@step
def bad_request() -> None:
    error = get(ApiError, "/sessions?cursor=nonsense", status=400)
    check(error.code == ErrorCode.CURSOR_INVALID, "the code is CURSOR_INVALID")


play()
