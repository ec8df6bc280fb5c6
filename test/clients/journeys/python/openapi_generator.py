import base64
import time
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from generated_client import (
    ApiClient,
    ApiError,
    ApiException,
    Configuration,
    ConversationsApi,
    CreditsApi,
    DoneEvent,
    ErrorCode,
    ExchangeApiKeyRequest,
    FilesApi,
    ModelsApi,
    NewUpload,
    RunEvent,
    RunsApi,
    RunStart,
    RunStatus,
    SignInApi,
    TokenEvent,
    UploadStatus,
)

from support import api_key, base_url, check, expect, file_text, frames_of, nowhere, play, step

configuration = Configuration(host=base_url)
# Its own format writes the offset without a colon, which RFC 3339 does not allow. Times are UTC.
configuration.datetime_format = "%Y-%m-%dT%H:%M:%S.%fZ"
client = ApiClient(configuration)
runs = RunsApi(client)
conversations = ConversationsApi(client)
files = FilesApi(client)
ids: dict[str, UUID] = {}
answers: list[str] = []
times: list[datetime] = []


@step
def sign_in() -> None:
    token = SignInApi(client).exchange_api_key(
        exchange_api_key_request=ExchangeApiKeyRequest(api_key=api_key)
    )
    check(token.token_type == "Bearer" and token.expires_in > 0, "the token is a bearer token")
    configuration.access_token = token.access_token


@step
def models() -> None:
    defaults = [model for model in ModelsApi(client).list_models().items if model.is_default]
    check(len(defaults) == 1, "there is one default model")
    check(defaults[0].price.input_per_1k >= 0, "it has a price")


@step
def balance() -> None:
    found = CreditsApi(client).get_balance()
    check(found.balance > 0, "there are credits")
    check(found.available == found.balance - found.held, "the balance adds up")


@step
def begin() -> None:
    started = runs.start_run(RunStart(message="Hello"))
    check(started.status == "running" and not started.resumed, "the run is new and running")
    ids["run"] = expect(UUID, started.run_id)
    ids["session"] = expect(UUID, started.session_id)


@step
def events() -> None:
    frames = frames_of(runs.follow_run(ids["run"]))
    found = [RunEvent.from_dict(dict(frame)).actual_instance for frame in frames]
    text = "".join(event.data.text for event in found if isinstance(event, TokenEvent))
    last = expect(DoneEvent, found[-1])
    check(text != "", "the answer has a text")
    answers.append(text)
    check(last.data.status == "done", "the run is done")
    check(last.data.session_id == ids["session"], "the last event names the session")


@step
def outcome() -> None:
    run = runs.get_run(ids["run"])
    check(run.status == RunStatus.DONE and run.answer == answers[0], "the run has that answer")
    check(run.usage is not None and run.usage.total_tokens > 0, "it used tokens")
    times.append(expect(datetime, run.created_at))


@step
def runs_since() -> None:
    found = runs.list_runs(status=RunStatus.DONE, session_id=ids["session"], var_from=times[0])
    check([run.run_id for run in found.items] == [ids["run"]], "the run is found by its time")


@step
def messages() -> None:
    roles = [message.role for message in conversations.list_messages(ids["session"]).items]
    check(roles == ["user", "assistant"], "there is a question and an answer")


@step
def sessions() -> None:
    session = conversations.list_sessions().items[0]
    check(session.id == ids["session"] and session.active_run_id is None, "the session is idle")


@step
def pages() -> None:
    runs.start_run(RunStart(message="Another one"))
    first = conversations.list_sessions(limit=1)
    rest = conversations.list_sessions(limit=1, cursor=expect(str, first.next_cursor))
    check(len(first.items) == 1, "a page has as many items as were asked for")
    check(rest.items[0].id == ids["session"], "the pages follow each other")
    check(rest.next_cursor is None, "the last page has no cursor")


@step
def upload() -> None:
    content = base64.b64encode(file_text.encode()).decode()
    made = files.create_upload(
        NewUpload(filename="notes.md", mime="text/markdown", content_base64=content)
    )
    state = files.get_upload(made.upload_id)
    while state.status == UploadStatus.PARSING:
        time.sleep(0.05)
        state = files.get_upload(made.upload_id)
    check((state.text or "").strip() == file_text.strip(), "the text of the file is there")
    raw = files.download_upload(made.upload_id)
    check(bytes(raw) == file_text.encode(), "the file is as it was")


def error_of(call: Callable[[], object]) -> tuple[object, ApiError]:
    try:
        call()
    except ApiException as error:
        return error.status, expect(ApiError, error.data)
    raise AssertionError("The call succeeded.")


@step
def not_found() -> None:
    status, error = error_of(lambda: conversations.get_session(UUID(nowhere)))
    check(status == 404 and error.code == ErrorCode.NOT_FOUND, "the code is NOT_FOUND")
    check(error.request_id != "", "the error names its request")


@step
def bad_request() -> None:
    status, error = error_of(lambda: conversations.list_sessions(cursor="nonsense"))
    check(status == 400 and error.code == ErrorCode.CURSOR_INVALID, "the code is CURSOR_INVALID")


play()
