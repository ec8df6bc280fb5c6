// A process that runs test files, one after the other, as its parent asks. What uvu keeps in the
// global object is emptied between two files. Settings, folder and fetch are as before again.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cpuOf } from './cpu.ts'
import { endOfFile, type Answered, type Asked } from './protocol.ts'

/** One run of one suite: the failures as text or `true`, passed, skipped, total. */
type Run = () => Promise<[string | true, number, number, number]>
type Uvu = { UVU_DEFER?: boolean; UVU_QUEUE: (null | Run)[][]; UVU_INDEX?: number }
/** A file closes what it opened; how long that may take. */
const closingMsMax = 5000
/** Sockets that the client keeps for the next request, and what this process talks through. */
const passing = new Set(['TCPSocketWrap', 'Immediate', 'TTYWrap', 'PipeWrap', 'FSReqPromise'])

const uvu = globalThis as unknown as Uvu
uvu.UVU_DEFER = true
uvu.UVU_QUEUE = []
// uvu looks at what is set above when it is imported. All files declare on this one suite.
const { test } = await import('uvu')
const say = (text: string) => void process.stdout.write(text)

const openNow = () => process.getActiveResourcesInfo().filter(name => !passing.has(name))
function leftBeyond(before: readonly string[]): readonly string[] {
  const known = [...before]
  return openNow().filter(name => {
    const at = known.indexOf(name)
    if (at >= 0) known.splice(at, 1)
    return at < 0
  })
}
async function leftOpen(before: readonly string[]): Promise<readonly string[]> {
  const until = performance.now() + closingMsMax
  while (leftBeyond(before).length > 0 && performance.now() < until)
    await new Promise(resolved => setTimeout(resolved, 20).unref() && setImmediate(resolved))
  return leftBeyond(before)
}

/** Removes listeners that would hide the defects of the files that follow; names their events. */
const takeGuards = () =>
  ['uncaughtException', 'unhandledRejection'].filter(name => {
    const isGuarded = process.listenerCount(name) > 0
    process.removeAllListeners(name)
    return isGuarded
  })

const home = process.cwd()
const { fetch } = globalThis
let isFirst = true
async function runFile(file: string): Promise<Answered> {
  const settings = { ...process.env }
  const open = openNow()
  const began = cpuOf()
  const wasFirst = isFirst
  isFirst = false
  uvu.UVU_INDEX = 0
  uvu.UVU_QUEUE.splice(0, uvu.UVU_QUEUE.length, [])
  let [passed, failed, skipped] = [0, 0, 0]
  let started = began
  try {
    await import(pathToFileURL(resolve(file)).href)
    started = cpuOf()
    const runs = uvu.UVU_QUEUE[0]!.filter(run => run !== null)
    // What was declared after the file's last test.run() would run with the next file.
    const declared = runs.length
    test.run()
    const late = uvu.UVU_QUEUE[0]!.filter(run => run !== null).slice(declared)
    for (const run of [...runs, ...late]) {
      const [errors, done, skips, total] = await run()
      if (errors !== true) say(`\n${errors}\n`)
      else if (done < total) say(`${file} has a hook that threw.\n`)
      if (late.includes(run) && total + skips > 0) {
        failed++
        say(`${file} has tests behind its last test.run().\n`)
      }
      passed += done
      failed += total - done
      skipped += skips
    }
    if (passed + failed + skipped === 0) {
      failed++
      say(`${file} ran no test.\n`)
    }
  } catch (error) {
    failed++
    say(`${error instanceof Error ? error.stack : String(error)}\n`)
  }
  // Now a rejection that nobody handles ends this process, before the file has passed.
  await new Promise(resolved => setImmediate(resolved))
  const left = [...(await leftOpen(open)), ...takeGuards()]
  if (left.length > 0) {
    failed++
    say(`${file} left open: ${left.join(', ')}.\n`)
  }
  for (const name of Object.keys(process.env)) if (!(name in settings)) delete process.env[name]
  Object.assign(process.env, settings)
  process.chdir(home)
  globalThis.fetch = fetch
  const ended = cpuOf()
  return {
    file,
    passed,
    failed,
    skipped,
    bootMs: wasFirst ? began : 0,
    startMs: started - began,
    cpuMs: ended - began,
    rssMib: process.memoryUsage.rss() / 2 ** 20,
  }
}

process.on('message', ({ file }: Asked) => {
  void runFile(file).then(answered => {
    say(endOfFile)
    process.send!(answered)
  })
})
process.on('disconnect', () => process.exit(0))
