/* Preloaded into the server: each fsync and fdatasync takes DELAY_MS longer, and its beginning and end are written to SYNC_LOG. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now_ms(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); return t.tv_sec * 1000LL + t.tv_nsec / 1000000; }

static int slow(const char *name, int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  const char *path = getenv("SYNC_LOG"), *delay = getenv("DELAY_MS");
  long long begin = now_ms();
  int result;
  if (delay) usleep(atoi(delay) * 1000);
  result = real(fd);
  if (path) {
    char line[64]; int length = snprintf(line, sizeof line, "%lld %lld\n", begin, now_ms());
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log >= 0) { if (write(log, line, length) != length) result = -1; close(log); }
  }
  return result;
}
int fdatasync(int fd) { return slow("fdatasync", fd); }
int fsync(int fd) { return slow("fsync", fd); }
