// Two drivers that may crash or stand still; and what a cold start makes of a log without its end.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { oneFault } from './one-fault.ts'
import { coldStart } from './play.ts'
import { scripts } from './scripts.ts'

oneFault(test, 'drivers')

for (const script of scripts)
  test(`${script.name}: without its terminal record the log leads to the same one`, async () => {
    assert.equal(await coldStart(script, 1), [])
  })

test.run()
