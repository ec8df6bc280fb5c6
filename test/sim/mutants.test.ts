// What `npm run simulate` plants into the source, it must find: here, that each fault still is a
// change of the source. To hunt them all takes a minute.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { mutants, applyMutant } from './mutants.ts'

assert.ok(mutants.length >= 10)
assert.is(new Set(mutants.map(({ name }) => name)).size, mutants.length)
for (const fault of mutants)
  test(`${fault.name}: the text that it replaces stands once in ${fault.file}`, () => {
    const source = readFileSync(resolve(import.meta.dirname, '../..', fault.file), 'utf8')
    const changed = applyMutant(fault, source)
    assert.type(changed, 'string')
    assert.is.not(changed, source)
  })

test.run()
