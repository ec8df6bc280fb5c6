import {
  Configuration,
  ConversationsApi,
  CreditsApi,
  FilesApi,
  ApiErrorFromJSON,
  ModelsApi,
  ResponseError,
  RunEventFromJSON,
  RunsApi,
  SignInApi,
  type ApiError,
} from './generated'
import {
  apiKey,
  baseUrl,
  check,
  fileText,
  framesOf,
  given,
  known,
  nowhere,
  pause,
  play,
  step,
} from './support'

const ids = { run: '', session: '' }
const seen = { answer: '', since: new Date(0) }
const signedIn = { token: '' }
const configuration = new Configuration({
  basePath: baseUrl,
  accessToken: () => signedIn.token,
})
const runs = new RunsApi(configuration)
const conversations = new ConversationsApi(configuration)
const files = new FilesApi(configuration)

step('sign in', async () => {
  const token = await new SignInApi(configuration).exchangeApiKey({
    exchangeApiKeyRequest: { apiKey },
  })
  check(token.tokenType === 'Bearer' && token.expiresIn > 0, 'the token is a bearer token')
  signedIn.token = token.accessToken
})

step('models', async () => {
  const { items } = await new ModelsApi(configuration).listModels()
  const defaults = items.filter(model => model.isDefault)
  check(defaults.length === 1, 'there is one default model')
  check(known<number>(defaults[0]!.price.inputPer1k) >= 0, 'it has a price')
})

step('balance', async () => {
  const { balance: whole, held, available } = await new CreditsApi(configuration).getBalance()
  check(whole > 0 && available === whole - held, 'the balance adds up')
})

step('begin', async () => {
  const started = await runs.startRun({ runStart: { message: 'Hello' } })
  check(started.status === 'running' && !started.resumed, 'the run is new and running')
  ids.run = known<string>(started.runId)
  ids.session = known<string>(started.sessionId)
})

step('events', async () => {
  const text = given(await runs.followRun({ runId: ids.run }), 'events')
  const found = framesOf(text).map(RunEventFromJSON)
  const answer = found.map(event => (event.type === 'token' ? event.data.text : '')).join('')
  const last = found.at(-1)
  check(answer.length > 0, 'the answer has a text')
  seen.answer = answer
  check(last?.type === 'done' && last.data.status === 'done', 'the run is done')
  check(last.data.sessionId === ids.session, 'the last event names the session')
})

step('outcome', async () => {
  const run = await runs.getRun({ runId: ids.run })
  check(run.status === 'done' && run.answer === seen.answer, 'the run has that answer')
  check(known<number>(given(run.usage, 'usage').totalTokens) > 0, 'it used tokens')
  seen.since = known<Date>(run.createdAt)
})

step('runs since', async () => {
  const { items } = await runs.listRuns({
    status: 'done',
    sessionId: ids.session,
    from: seen.since,
  })
  check(items.map(run => run.runId).join() === ids.run, 'the run is found by its time')
})

step('messages', async () => {
  const { items } = await conversations.listMessages({ id: ids.session })
  const roles = items.map(message => message.role)
  check(roles.join() === 'user,assistant', 'there is a question and an answer')
  check(items[0]!.createdAt instanceof Date, 'times are dates')
})

step('sessions', async () => {
  const [session] = (await conversations.listSessions()).items
  check(session?.id === ids.session && session.activeRunId === null, 'the session is idle')
})

step('pages', async () => {
  await runs.startRun({ runStart: { message: 'Another one' } })
  const { items, nextCursor } = await conversations.listSessions({ limit: 1 })
  const cursor = given(nextCursor, 'cursor')
  const rest = await conversations.listSessions({ limit: 1, cursor })
  check(items.length === 1 && rest.items[0]?.id === ids.session, 'the pages follow each other')
  check(rest.nextCursor === undefined, 'the last page has no cursor')
})

step('upload', async () => {
  const { uploadId: id } = await files.createUpload({
    newUpload: { filename: 'notes.md', mime: 'text/markdown', contentBase64: btoa(fileText) },
  })
  let state = await files.getUpload({ id })
  while (state.status === 'parsing') {
    await pause()
    state = await files.getUpload({ id })
  }
  check(state.text?.trim() === fileText.trim(), 'the text of the file is there')
  const raw = known<Blob>(await files.downloadUpload({ id }))
  check((await raw.text()) === fileText, 'the file is as it was')
})

/** The client throws what is not a success; the body is read by the model of errors. */
async function errorOf(call: Promise<unknown>): Promise<{ status: number; body: ApiError }> {
  try {
    await call
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error
    const body = ApiErrorFromJSON(await error.response.json())
    return { status: error.response.status, body }
  }
  throw new Error('The call succeeded.')
}

step('not found', async () => {
  const { status, body } = await errorOf(conversations.getSession({ id: nowhere }))
  check(status === 404 && known(body.code) === 'NOT_FOUND', 'the code is NOT_FOUND')
  check(body.requestId.length > 0, 'the error names its request')
})

step('bad request', async () => {
  const { status, body } = await errorOf(conversations.listSessions({ cursor: 'nonsense' }))
  check(status === 400 && known(body.code) === 'CURSOR_INVALID', 'the code is CURSOR_INVALID')
})

void play()
