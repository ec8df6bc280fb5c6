// 200 runs of every kind under a server whose disk is full for a while: nothing that was said is
// lost, and all end when there is room again, without a restart.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { signUp } from '../support/process.ts'
import { pause, seenIn, type Follower } from './client.ts'
import { endRounds, playRound, type Env } from './round.ts'

/** Room for the 200 runs, and as much again for somebody who needs it all. */
const bytesMax = 8_000_000
/**
 * Characters of a message: with ever smaller ones the last pages are filled. A long one takes its
 * room and an excerpt's.
 */
const sizes = [190_000, 20_000, 2000, 200]

/** Each answer takes four seconds: on a slow machine, too, runs are in mid-stream when it fills. */
const slowModel = 'scripted:?tokens=20&interval_ms=200'

type Answer = { readonly status: number; readonly body: Readonly<Record<string, string>> }

/** Another user of the same server, who fills its disk and makes room again. */
async function createHog(base: string, env: Env) {
  const { token } = await signUp(base, env, 10_000)
  const sessions: string[] = []
  const ask = async (method: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(base + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    return {
      status: response.status,
      body: text === '' ? {} : (JSON.parse(text) as Answer['body']),
    }
  }
  /** One more message; false where there is no room for it. */
  const write = async (size: number): Promise<boolean> => {
    const { status, body } = await ask('POST', '/chat', {
      message: `[[tokens=1]] [[interval_ms=0]] ${'x'.repeat(size)}`,
    })
    if (status === 503) return false
    assert.is(status, 200, JSON.stringify(body))
    sessions.push(body['session_id']!)
    return true
  }
  return {
    /**
     * The greater part of what there is, which takes its time: the rest is taken while runs are in
     * mid-stream.
     */
    async begin(): Promise<void> {
      for (let n = 0; n < 12; n++) assert.ok(await write(sizes[0]!), 'there is room for the runs')
    },
    /** Until nothing fits. */
    async fill(): Promise<void> {
      for (const size of sizes) while (await write(size));
    },
    /**
     * For a second or two: whatever a commit that failed gave back is taken, too. Answers how often
     * there was no room.
     */
    async keepFull(): Promise<number> {
      let refused = 0
      for (let i = 0; i < 30; i++, await pause(40)) if (!(await write(sizes.at(-2)!))) refused++
      return refused
    },
    /** Removes every conversation; one whose run has not ended yet comes again. */
    async clear(): Promise<void> {
      while (sessions.length > 0) {
        const { status } = await ask('DELETE', `/sessions/${sessions[0]}`)
        if (status === 204 || status === 404) sessions.shift()
        else {
          sessions.push(sessions.shift()!)
          await pause(10)
        }
      }
    },
  }
}

test('200 runs through a disk that fills for a while, and a process that dies', async () => {
  const refused: number[] = []
  let readers: readonly Follower[] = []
  await playRound(
    { STORAGE_URL: `sqlite:?bytes_max=${bytesMax}`, MODELS_URL: slowModel },
    async ({ midStream, server, env, followers, restart }) => {
      const hog = await createHog(server().base, env)
      readers = followers
      await hog.begin()
      assert.ok((await midStream(60)) >= 60, 'so many are in mid-stream when it fills')
      await hog.fill()
      refused.push(await hog.keepFull())
      assert.is(server().child.exitCode, null, 'the process lives')
      // It comes up again though there is no room.
      await restart()
      refused.push(await hog.keepFull())
      await hog.clear()
    },
    { others: true },
  )
  const interrupted = readers.filter(({ frames }) =>
    [...frames.values()].some(frame => seenIn(frame).type === 'superseded'),
  ).length
  assert.ok(
    refused.every(count => count >= 20),
    `there was no room: ${refused}`,
  )
  assert.ok(interrupted >= 20, `runs were taken up in mid-answer: ${interrupted}`)
})

test.after(endRounds)
test.run()
