// What the kernel hands to an adapter that opens, for tests that open one by themselves.
import assert from 'node:assert/strict'
import type { Opening } from '#ports/adapter.ts'

export const opening = (
  url: string,
  parts: Partial<Omit<Opening, 'url'>> & Pick<Opening, 'clock'>,
): Opening => ({
  url: new URL(url),
  dataDir: '/',
  log: () => {},
  secret: () => undefined,
  engine: () => assert.fail('this adapter rides on no other'),
  ...parts,
})
