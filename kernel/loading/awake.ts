// Keeps the process alive while a promise is pending that only a timer settles, because the clock's
// timers do not.

/**
 * Keeps the process alive until the returned function is called. Otherwise Node ends a process that
 * only waits for promises.
 */
export function stayAwake(): () => void {
  const { port1: port } = new MessageChannel()
  port.ref()
  return () => port.close()
}
