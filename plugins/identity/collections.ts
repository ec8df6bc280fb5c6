// Users, organisations and sign-ins. Users belong to the platform, and memberships tie them to
// organisations.
import { collection } from '#ports/storage.ts'

export type User = {
  readonly id: string
  /** Normalised: trimmed and in lower case. */
  readonly email: string
  readonly name?: string
  /**
   * PHC string; absent where the account was made without one, or where several registrations
   * brought different ones.
   */
  readonly passwordHash?: string
  readonly verified: boolean
  readonly suspended: boolean
  /** The token version: a higher one ends every session and every API key. */
  readonly version: number
  /** The organisation that tokens name. */
  readonly orgId: string
  /**
   * The account's first credits, written down before they are credited so that a repetition credits
   * the same.
   */
  readonly credits: number
  /** True when the organisation, the membership and the credits are there. */
  readonly settled: boolean
  /** The seed of the code, so that each email of an hour names the same code. */
  readonly codeSeed?: string
  readonly codeHash?: string
  readonly codeMadeAt?: number
  readonly codeExpiresAt?: number
  readonly codeTries?: number
  /** Marks of the networks from which the user has signed in, newest first. */
  readonly networks?: readonly string[]
  readonly createdAt: number
  /** An address that nobody proved is forgotten; absent once it is proved. */
  readonly expiresAt?: number
}
/** Fields that are removed when the address is proved. */
export const codeFields = [
  'codeSeed',
  'codeHash',
  'codeMadeAt',
  'codeExpiresAt',
  'codeTries',
  'expiresAt',
] as const
export type Organisation = {
  readonly id: string
  readonly name: string
  readonly createdAt: number
}
export type Membership = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly role: string
  readonly createdAt: number
}
/** One sign-in: the chain of its refresh tokens. */
export type Family = {
  readonly id: string
  readonly userId: string
  readonly orgId: string
  readonly version: number
  readonly revokedAt?: number
  readonly createdAt: number
  readonly expiresAt: number
}
export type RefreshToken = {
  readonly id: string
  readonly hash: string
  readonly familyId: string
  readonly userId: string
  readonly usedAt?: number
  readonly expiresAt: number
}
export type Key = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly name: string
  readonly prefix: string
  /** SHA-256 of the whole key, in hex. */
  readonly hash: string
  /** The user's token version at its making. */
  readonly version: number
  /**
   * 1 to 20 while the key is active. The unique index over it bounds a user's active keys, even
   * when many are made at once.
   */
  readonly slot?: number
  readonly active: boolean
  readonly createdAt: number
  readonly lastUsedAt?: number
  /** A revoked key is kept for a while, for those who ask what it was. */
  readonly expiresAt?: number
}

export const Users = collection<User>({
  name: 'users',
  scope: 'platform',
  unique: [['email']],
  expires: 'expiresAt',
  owner: 'id',
})
export const Organisations = collection<Organisation>({ name: 'organisations', scope: 'platform' })
export const Memberships = collection<Membership>({
  name: 'memberships',
  scope: 'tenant',
  global: true,
  unique: [['orgId', 'userId']],
  index: [['userId']],
  owner: 'userId',
})
export const Families = collection<Family>({
  name: 'refresh_families',
  scope: 'platform',
  index: [['userId']],
  expires: 'expiresAt',
  owner: 'userId',
})
export const RefreshTokens = collection<RefreshToken>({
  name: 'refresh_tokens',
  scope: 'platform',
  unique: [['hash']],
  index: [['userId']],
  expires: 'expiresAt',
  owner: 'userId',
})
export const Keys = collection<Key>({
  name: 'api_keys',
  scope: 'tenant',
  global: true,
  globallyUnique: [['hash'], ['userId', 'slot']],
  index: [['userId']],
  expires: 'expiresAt',
  owner: 'userId',
})

/** Why the identity plugin looks across organisations. */
export const reasons = {
  people: 'people belong to the platform, and are known by their address before they sign in',
  sessions: 'a refresh token is looked up by its hash before its holder is known',
  keys: 'an API key is looked up by its hash before its holder is known',
  home: 'a new account founds its own organisation',
} as const
