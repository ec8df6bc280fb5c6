import base64
import time
from datetime import datetime
from uuid import UUID

from agent_platform_client import AuthenticatedClient, Client
from agent_platform_client.api.conversations import get_session, list_messages, list_sessions
from agent_platform_client.api.credits_ import get_balance
from agent_platform_client.api.files import create_upload, download_upload, get_upload
from agent_platform_client.api.models import list_models
from agent_platform_client.api.runs import follow_run, get_run, list_runs, start_run
from agent_platform_client.api.sign_in import exchange_api_key
from agent_platform_client.models import (
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
    RunStart,
    RunStarted,
    RunStatus,
    TokenEvent,
    Upload,
    UploadStatus,
)
from agent_platform_client.types import File

from support import api_key, base_url, check, expect, file_text, frames_of, nowhere, play, step

client = AuthenticatedClient(base_url=base_url, token="")
ids: dict[str, UUID] = {}
answers: list[str] = []
times: list[datetime] = []


@step
def sign_in() -> None:
    global client
    answer = exchange_api_key.sync(
        client=Client(base_url=base_url), body=ExchangeApiKeyRequest(api_key=api_key)
    )
    token = expect(AccessToken, answer)
    check(token.token_type == "Bearer" and token.expires_in > 0, "the token is a bearer token")
    client = AuthenticatedClient(base_url=base_url, token=token.access_token)


@step
def models() -> None:
    found = expect(PageModel, list_models.sync(client=client))
    defaults = [model for model in found.items if model.is_default]
    check(len(defaults) == 1, "there is one default model")
    check(defaults[0].price.input_per_1k >= 0, "it has a price")


@step
def balance() -> None:
    found = expect(GetBalanceResponse, get_balance.sync(client=client))
    check(found.balance > 0, "there are credits")
    check(found.available == found.balance - found.held, "the balance adds up")


@step
def begin() -> None:
    started = expect(RunStarted, start_run.sync(client=client, body=RunStart(message="Hello")))
    check(
        started.status == RunStatus.RUNNING and not started.resumed, "the run is new and running"
    )
    ids["run"] = expect(UUID, started.run_id)
    ids["session"] = expect(UUID, started.session_id)


@step
def events() -> None:
    frames = frames_of(expect(str, follow_run.sync(ids["run"], client=client)))
    tokens = [TokenEvent.from_dict(frame) for frame in frames if frame["type"] == "token"]
    text = "".join(token.data.text for token in tokens)
    last = DoneEvent.from_dict(frames[-1])
    check(text != "", "the answer has a text")
    answers.append(text)
    check(last.type_ == "done" and last.data.status == "done", "the run is done")
    check(last.data.session_id == ids["session"], "the last event names the session")


@step
def outcome() -> None:
    run = expect(Run, get_run.sync(ids["run"], client=client))
    check(run.status == RunStatus.DONE and run.answer == answers[0], "the run has that answer")
    check(run.usage is not None and run.usage.total_tokens > 0, "it used tokens")
    times.append(expect(datetime, run.created_at))


@step
def runs_since() -> None:
    answer = list_runs.sync(
        client=client, status=RunStatus.DONE, session_id=ids["session"], from_=times[0]
    )
    found = [run.run_id for run in expect(PageRunSummary, answer).items]
    check(found == [ids["run"]], "the run is found by its time")


@step
def messages() -> None:
    found = expect(PageMessage, list_messages.sync(ids["session"], client=client))
    roles = [message.role for message in found.items]
    check(roles == ["user", "assistant"], "there is a question and an answer")


@step
def sessions() -> None:
    session = expect(PageSession, list_sessions.sync(client=client)).items[0]
    check(session.id == ids["session"] and session.active_run_id is None, "the session is idle")


@step
def pages() -> None:
    start_run.sync(client=client, body=RunStart(message="Another one"))
    first = expect(PageSession, list_sessions.sync(client=client, limit=1))
    cursor = expect(str, first.next_cursor)
    rest = expect(PageSession, list_sessions.sync(client=client, limit=1, cursor=cursor))
    check(len(first.items) == 1, "a page has as many items as were asked for")
    check(rest.items[0].id == ids["session"], "the pages follow each other")
    check(not rest.next_cursor, "the last page has no cursor")


@step
def upload() -> None:
    content = base64.b64encode(file_text.encode()).decode()
    new = NewUpload(filename="notes.md", mime="text/markdown", content_base64=content)
    made = expect(CreateUploadResponse, create_upload.sync(client=client, body=new))
    state = expect(Upload, get_upload.sync(made.upload_id, client=client))
    while state.status == UploadStatus.PARSING:
        time.sleep(0.05)
        state = expect(Upload, get_upload.sync(made.upload_id, client=client))
    check((state.text or "").strip() == file_text.strip(), "the text of the file is there")
    raw = expect(File, download_upload.sync(made.upload_id, client=client))
    check(raw.payload.read() == file_text.encode(), "the file is as it was")


@step
def not_found() -> None:
    answer = get_session.sync_detailed(UUID(nowhere), client=client)
    error = expect(ApiError, answer.parsed)
    check(answer.status_code == 404, "the status is 404")
    check(error.code == ErrorCode.NOT_FOUND, "the code is NOT_FOUND")
    check(error.request_id != "", "the error names its request")


@step
def bad_request() -> None:
    answer = list_sessions.sync_detailed(client=client, cursor="nonsense")
    error = expect(ApiError, answer.parsed)
    check(answer.status_code == 400, "the status is 400")
    check(error.code == ErrorCode.CURSOR_INVALID, "the code is CURSOR_INVALID")


play()
