// What the kernel hands to an adapter that opens, for tests that open one by themselves.
import assert from 'node:assert/strict'
import type { AdapterContext } from '#ports/adapter.ts'

export const opening = (
  url: string,
  parts: Partial<Omit<AdapterContext, 'url'>> & Pick<AdapterContext, 'clock'>,
): AdapterContext => ({
  url: new URL(url),
  dataDir: '/',
  log: () => {},
  secret: () => undefined,
  engine: () => assert.fail('this adapter rides on no other'),
  ...parts,
})
