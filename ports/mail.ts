// Outgoing email.
import { port, type Lifecycle } from './token.ts'

/** `to` is one address. `html` is sent beside the text, never instead of it. */
export type Email = {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
}
/** Sends emails from the address that the operator set. */
export type Mailer = Lifecycle & {
  /**
   * Resolves when the email is handed over to the outbox or to the next mail server. UNAVAILABLE
   * when that fails. INVALID_FIELD for an address or a subject with line breaks.
   */
  send(letter: Email, options?: { readonly signal?: AbortSignal }): Promise<void>
}

/**
 * Hands emails over; delivery is not reported. A plugin declares why it sends emails (`may.mail`).
 *  @example plugins/identity/accounts/registration.ts#register
 */
export const Mail = port<Mailer>('mail')
