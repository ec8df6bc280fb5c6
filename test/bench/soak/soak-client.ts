// One of the soak's client processes: readers of runs that wait for their user, and readers of runs
// that are busy, told by the parent what to do and telling it what they saw.
import { createWire, type Frame } from '../wire.ts'

export type Work = {
  readonly base: string
  readonly idle: number
  readonly busy: number
  readonly tokens: number
  readonly intervalMs: number
}
/** `drain`: no new busy run is started, and every question is answered. */
export type Order =
  | { readonly do: 'work'; readonly token: string; readonly work: Work }
  | { readonly do: 'token'; readonly token: string }
  | { readonly do: 'drain' }
export type Told = {
  readonly kind: 'told'
  /** Streams that read now. */
  readonly open: number
  /** Of the idle ones: those whose question has come. */
  readonly asked: number
  readonly started: number
  readonly done: number
  readonly events: number
  /** Streams that broke and were taken up again. */ readonly broke: number
  readonly failed: number
  /** The first few. */
  readonly why: readonly string[]
  /**
   * Milliseconds from the request to the first event, and when that came (wall clock), since the
   * last telling.
   */
  readonly firsts: readonly (readonly [ms: number, at: number])[]
  readonly over: boolean
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const whyMax = 10
const answeringAtOnce = 20
const openingAtOnce = 50
let token = ''
let draining = false
let over = false
let drain = () => {}
const drained = new Promise<void>(resolve => {
  drain = resolve
})
let open = 0
let asked = 0
let started = 0
let done = 0
let events = 0
let broke = 0
let failed = 0
let firsts: [number, number][] = []
const why: string[] = []
const fail = (what: string) => {
  failed++
  if (why.length < whyMax) why.push(what)
}

type Run = {
  readonly id: string
  readonly at: number
  tokens: number
  last: number
  ended: string | undefined
}
type WireOf = ReturnType<typeof createWire>

/** Reads to the end of the run, coming back with the cursor where a stream breaks. */
async function read(wire: WireOf, run: Run, onFrame: (frame: Frame) => void): Promise<void> {
  open++
  while (run.ended === undefined) {
    try {
      await wire.frames(await wire.open(run.id, run.last), frame => {
        events++
        if (frame.id <= run.last) fail(`seq ${frame.id} came after ${run.last}`)
        if (run.ended !== undefined) fail(`${frame.type} came after the end`)
        run.last = frame.id
        if (frame.type === 'token') run.tokens++
        if (frame.type === 'done' || frame.type === 'error')
          run.ended =
            frame.type === 'done'
              ? (JSON.parse(frame.data) as { status: string }).status
              : `error ${frame.data}`
        onFrame(frame)
      })
    } catch (error) {
      if (why.length < whyMax) why.push((error as Error).message)
    }
    if (run.ended !== undefined) break
    broke++
    await pause(200)
  }
  open--
}
async function begin(wire: WireOf, message: string): Promise<Run> {
  const at = performance.now()
  const { run_id: id } = await wire.post<{ run_id: string }>('/chat', { message })
  started++
  return { id, at, tokens: 0, last: 0, ended: undefined }
}
function check({ ended, tokens }: Run, expected: number): void {
  if (ended === 'done' && tokens === expected) done++
  else fail(`a run ended as ${ended} after ${tokens} of ${expected} tokens`)
}

async function beBusy(wire: WireOf, { tokens, intervalMs }: Work): Promise<void> {
  // They do not begin, and end, all at once.
  await pause(Math.random() * tokens * intervalMs)
  while (!draining) {
    try {
      const run = await begin(wire, 'hello')
      let first = true
      await read(wire, run, () => {
        if (first) firsts.push([performance.now() - run.at, Date.now()])
        first = false
      })
      check(run, tokens)
    } catch (error) {
      fail((error as Error).message)
      await pause(1000)
    }
  }
}

const question =
  '[[tokens=3]] [[interval_ms=0]] [[tool=ask_user {"question":"Which?","options":["red","blue"]}]]'
type Turns = <T>(act: () => Promise<T>) => Promise<T>
/** So many at a time, the others in turn. */
function turnsOf(max: number): Turns {
  let free = max
  const line: (() => void)[] = []
  return async act => {
    if (free > 0) free--
    else await new Promise<void>(go => line.push(go))
    try {
      return await act()
    } finally {
      const next = line.shift()
      if (next) next()
      else free++
    }
  }
}
async function beIdle(wire: WireOf, opening: Turns, answering: Turns): Promise<void> {
  try {
    let questionId: string | undefined
    let isAsked = () => {}
    const whenAsked = new Promise<void>(resolve => {
      isAsked = resolve
    })
    const { run, reading } = await opening(async () => {
      const begun = await begin(wire, question)
      const reads = read(wire, begun, ({ type, data }) => {
        // A run that ends unasked is not waited for.
        isAsked()
        if (type !== 'user_choice') return
        questionId = (JSON.parse(data) as { question_id: string }).question_id
        asked++
      })
      await whenAsked
      return { run: begun, reading: reads }
    })
    await drained
    await answering(() =>
      wire.post(`/runs/${run.id}/respond`, { question_id: questionId, answer: 'a' }),
    )
    await reading
    check(run, 3)
  } catch (error) {
    fail((error as Error).message)
  }
}

const tell = () => {
  process.send!({
    kind: 'told',
    open,
    asked,
    started,
    done,
    events,
    broke,
    failed,
    why,
    firsts,
    over,
  } satisfies Told)
  firsts = []
}
async function work(load: Work): Promise<void> {
  const wire = createWire(load.base, () => token)
  const opening = turnsOf(openingAtOnce)
  const answering = turnsOf(answeringAtOnce)
  await Promise.all([
    ...Array.from({ length: load.idle }, () => beIdle(wire, opening, answering)),
    ...Array.from({ length: load.busy }, () => beBusy(wire, load)),
  ])
  wire.close()
  over = true
  tell()
}
process.on('message', (order: Order) => {
  if (order.do === 'drain') {
    draining = true
    drain()
  } else {
    token = order.token
    if (order.do === 'work') void work(order.work)
  }
})
process.on('disconnect', () => process.exit(1))
setInterval(tell, 1000)
