import { test } from 'uvu'
import { sqlitePlace } from '../../test/kit/sqlite.ts'
import { storageKit } from '../../test/kit/storage.ts'
import { manualClock } from '../clock/manual.ts'

storageKit(test, 'sqlite', { survives: true, place: () => sqlitePlace(manualClock()) })
test.run()
