// What other plugins may use of identity.
import { service } from '#kernel'

export type NewAccount = {
  readonly email: string
  /** Its first credits. */
  readonly credits: number
  /** Without one the account signs in by its API key alone. */
  readonly password?: string | undefined
}
/** `api_key` is shown this once; only its hash is kept. */
export type CreatedAccount = {
  readonly user_id: string
  readonly org_id: string
  readonly api_key: string
}

export type AccountsApi = {
  /**
   * A verified account in an organisation of its own, with an API key. CONFLICT when a verified
   * account has the address.
   */
  create(account: NewAccount): Promise<CreatedAccount>
  /**
   * Blocks sign-ins and exchanges at once; access tokens within ten seconds on other processes, at
   * once on this one. False for an unknown user.
   */
  suspend(userId: string): Promise<boolean>
  /** Ends a suspension. False for an unknown user. */
  restore(userId: string): Promise<boolean>
  /**
   * Raises the token version: every sign-in and every API key of the user ends. False for an
   * unknown user.
   */
  endSessions(userId: string): Promise<boolean>
}
/**
 * People and their organisations, for whoever makes or ends accounts by other means than POST
 * /auth/register.
 *  @example plugins/identity/plugin.ts#commands
 */
export const Accounts = service<AccountsApi>('accounts')
