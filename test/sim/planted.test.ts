// What `npm run simulate` plants into the source, it must find: here, that each fault still is a change of the source. To hunt them all takes a minute.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { faults } from './planted.ts'

assert.ok(faults.length >= 10)
assert.is(new Set(faults.map(({ name }) => name)).size, faults.length)
for (const { name, file, find, replace } of faults) test(`${name}: the text that it replaces stands once in ${file}`, () => {
  assert.is(readFileSync(resolve(import.meta.dirname, '../..', file), 'utf8').split(find).length, 2)
  assert.not.equal(replace, find)
})

test.run()
