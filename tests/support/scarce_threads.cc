// For LD_PRELOAD: of the program PACELINE_SCARCE_PROGRAM thread number PACELINE_SCARCE_THREAD (from 0) is not
// started, as where another program has just taken the last.

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) noexcept {
  static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  static std::atomic<int> calls{0};
  const char* program = std::getenv("PACELINE_SCARCE_PROGRAM");
  const char* missing = std::getenv("PACELINE_SCARCE_THREAD");
  const int call = calls.fetch_add(1);
  if (program != nullptr && missing != nullptr && std::strcmp(program, program_invocation_short_name) == 0 &&
      call == std::atoi(missing)) {
    return EAGAIN;
  }
  return real(thread, attributes, body, argument);
}
