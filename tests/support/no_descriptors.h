#pragma once

// While it lives, this process gets no new file descriptor, or so many: then the system answers EMFILE.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>

namespace paceline {

class NoDescriptors {
 public:
  explicit NoDescriptors(std::size_t but = 0) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free =
        ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // poll() fails where the limit is lower
    ::close(lowest_free);
    const rlimit none{static_cast<rlim_t>(lowest_free) + but, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace paceline
