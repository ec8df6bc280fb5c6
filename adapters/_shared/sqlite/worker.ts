// The one thread that touches a database file: it runs batches of operations in order and answers
// each with one message.
import { parentPort, workerData } from 'node:worker_threads'
import { createCommits } from './commits.ts'
import { openDatabase, type Database } from './database.ts'
import { createDocs } from './docs.ts'
import { failureOf, isFatal, lost } from './failures.ts'
import type { Batch, Operation, Reply, Start, Started } from './protocol.ts'
import { createStreams } from './streams.ts'

const reads = new Set([
  'get',
  'find',
  'count',
  'read',
  'bounds',
  'streams',
  'collections',
  'ping',
  'nothing',
])

function serve(db: Database): void {
  const port = parentPort!
  let now = 0
  const docs = createDocs(db, () => now)
  const streams = createStreams(db)
  const post = (reply: Reply) => port.postMessage(reply)
  const commits = createCommits(db, {
    onSettled: () => post([commits.epoch(), commits.settled()]),
    onLoss: () => {
      docs.forget()
      streams.forget()
    },
  })
  const survives = (error: unknown) => !isFatal(error) && db.raw.isTransaction

  const operations: Readonly<Record<string, (...args: never[]) => unknown>> = {
    define: docs.define,
    collections: docs.collections,
    insert: docs.insert,
    get: docs.get,
    find: docs.find,
    update: docs.update,
    updateMany: docs.updateMany,
    remove: docs.remove,
    removeMany: docs.removeMany,
    count: docs.count,
    sweep: docs.sweep,
    insertMany: (at: number, list: Parameters<typeof docs.insertMany>[1]) =>
      docs.insertMany(at, list, survives),
    append: streams.append,
    read: streams.read,
    bounds: streams.bounds,
    streams: streams.names,
    restore: streams.restore,
    trim: streams.trim,
    rewrite: streams.rewrite,
    remove_stream: streams.remove,
    ping: () => db.prepare('SELECT 1').get()![0],
    nothing: () => undefined,
    /** Changes the quota of an open file. SQLite does not lower it below the pages in use. */
    quota: (pages: number) => db.prepare(`PRAGMA max_page_count = ${pages}`).get()![0],
  }

  function run(operation: Operation, known: number): unknown {
    const [kind, ...args] = operation
    if (reads.has(kind)) return operations[kind]!(...(args as never[]))
    // The sender did not know of a loss, so its operations may build upon lost writes.
    if (known !== commits.epoch()) return lost
    commits.begin()
    return operations[kind]!(...(args as never[]))
  }

  function runAll([epoch, through, , , list]: Batch): unknown[] {
    const answers: unknown[] = []
    for (const operation of list) {
      try {
        answers.push(run(operation, epoch))
      } catch (error) {
        const failure = failureOf(error)
        if (commits.writing && !survives(error)) {
          commits.lose()
          for (const [at, earlier] of list.entries())
            if (at < answers.length && !reads.has(earlier[0])) answers[at] = failure
        }
        answers.push(failure)
      }
    }
    commits.ran(through)
    return answers
  }

  function close(): void {
    commits.commit()
    // Moves the log into the database, so that one file holds everything.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    port.close()
  }

  port.on('message', (batch: Batch | 'close') => {
    if (batch === 'close') return close()
    now = batch[2]
    const answers = runAll(batch)
    post(
      batch[4].length > 0
        ? [commits.epoch(), commits.settled(), answers]
        : [commits.epoch(), commits.settled()],
    )
    if (batch[3]) commits.ask()
  })
  port.postMessage({} satisfies Started)
}

try {
  serve(openDatabase(workerData as Start))
} catch (error) {
  parentPort!.postMessage({ refusal: failureOf(error) } satisfies Started)
}
