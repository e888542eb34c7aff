#include "cli/run/non_blocking_output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/file.h"
#include "base/text.h"

namespace paceline::cli {

// A terminal that is ready takes some bytes, and then makes its writer wait: through a descriptor of our own
// it doesn't.
NonBlockingOutput::NonBlockingOutput(int fd) : fd_(fd) {
  if (::isatty(fd) != 1) return;
  own_ =
      UniqueFd(::open(str_cat("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own_.valid()) fd_ = own_.get();
}

void NonBlockingOutput::write_some() {
  std::size_t written = 0;
  while (!gone_ && written < waiting_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0) break;
    // A pipe that is ready takes PIPE_BUF bytes without waiting.
    const std::size_t count = std::min<std::size_t>(waiting_.size() - written, PIPE_BUF);
    const ssize_t n = ::write(fd_, waiting_.data() + written, count);
    if (n >= 0) {
      written += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      gone_ = true;
      // EIO: a terminal that hung up; EBADF: closed from the start, as its user wants it.
      if (errno != EPIPE && errno != EIO && errno != EBADF)
        status_ = errno_status(errno, "the output could not be written whole");
    }
  }
  waiting_.erase(0, gone_ ? std::string::npos : written);
}

void NonBlockingOutput::drain(int interrupted, int limit_ms) {
  const auto begin = std::chrono::steady_clock::now();
  for (write_some(); waiting(); write_some()) {
    int left = -1;
    if (limit_ms >= 0) {
      const auto passed =
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
      left = limit_ms - static_cast<int>(std::min<std::int64_t>(passed.count(), limit_ms));
    }
    pollfd waits[2] = {{fd_, POLLOUT, 0}, {interrupted, POLLIN, 0}};
    const int ready = ::poll(waits, 2, left);
    if (ready == 0 || waits[1].revents != 0) return;
  }
}

NonBlockingOutput::int_type NonBlockingOutput::overflow(int_type c) {
  if (c != traits_type::eof()) message_ += static_cast<char>(c);
  return traits_type::not_eof(c);
}

std::streamsize NonBlockingOutput::xsputn(const char* text, std::streamsize count) {
  message_.append(text, static_cast<std::size_t>(count));
  return count;
}

int NonBlockingOutput::sync() {
  if (!gone_ && waiting_.size() + message_.size() <= kMaxWaiting) waiting_ += message_;
  message_.clear();
  write_some();
  return 0;
}

void write_within(int fd, std::string_view text, int limit_ms) {
  NonBlockingOutput output(fd);
  output.stream() << text << std::flush;
  output.drain(-1, limit_ms);
}

}  // namespace paceline::cli
