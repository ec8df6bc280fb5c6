// One process that takes requests and one that drives runs; either may crash or stand still, and no word passes between them.
import { test } from 'uvu'
import { oneFault } from './one-fault.ts'

oneFault(test, 'roles')

test.run()
