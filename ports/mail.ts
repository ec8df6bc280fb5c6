// Letters out.
import { port, type Lifecycle } from './token.ts'

/** `to`: one address. `html`: beside the text, never instead of it. */
export type Email = {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
}
/** Sends letters, from the address that the operator set. */
export type Mailer = Lifecycle & {
  /**
   * Handed over (to the outbox or the next server) when it resolves. UNAVAILABLE when it cannot be;
   * INVALID_FIELD for an address or a subject with line breaks.
   */
  send(letter: Email, options?: { readonly signal?: AbortSignal }): Promise<void>
}

/**
 * Hands letters over; what becomes of them is not known here. A plugin declares what for
 * (`may.mail`).
 *  @example plugins/identity/registration.ts#register
 */
export const Mail = port<Mailer>('mail')
