// Linked into test programs that say ONE_THREAD (cmake/PacelineTargets.cmake): a thread that is started
// there, by whatever library, would be one that ThreadSanitizer never sees, so it ends the program and says
// what to do.

#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept {
  std::fputs(
      "a thread is started in a test program that says ONE_THREAD in its CMakeLists.txt: take that word "
      "away, so that ThreadSanitizer sees it\n",
      stderr);
  std::abort();
}
