// The figures of a server, as its operators read them.
import * as assert from 'uvu/assert'
import type { TestServer } from '../../conformance/plugin/server.ts'

export const text = async (server: Pick<TestServer, 'call'>) =>
  (await server.call('GET', '/metrics')).text
/** The sum of the samples whose line begins so; labels in any order are part of it. */
export const sum = async (server: Pick<TestServer, 'call'>, name: string, ...labels: string[]) =>
  (await text(server))
    .split('\n')
    .filter(
      line =>
        (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) &&
        labels.every(label => line.includes(label)),
    )
    .reduce((all, line) => all + Number(line.split(' ').at(-1)), 0)
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 500, `it never came: ${what}`)
    await new Promise(fulfil => setTimeout(fulfil, 10))
  }
}
