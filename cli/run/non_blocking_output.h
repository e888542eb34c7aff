#pragma once

// Writing to a reader that may not take it: a pipe nobody empties, a stopped terminal. One thread.

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/unique_fd.h"

namespace paceline::cli {

// Never waits: what the reader does not take now is kept, whole messages (up to a flush) of at most
// kMaxWaiting bytes; what comes then is dropped. A reader that went away gets nothing more, and nobody hears
// of it; nor does who can't be written to any more, but that is told: status().
class NonBlockingOutput final : public std::streambuf {
 public:
  static constexpr std::size_t kMaxWaiting = 16 << 20;

  explicit NonBlockingOutput(int fd);
  std::ostream& stream() { return stream_; }

  // Hands over what the reader takes now.
  void write_some();
  bool waiting() const { return !waiting_.empty(); }
  // Why the output could not be written: a disk is full. OK also where its reader went away.
  const absl::Status& status() const { return status_; }
  // Waits until the reader has taken everything, went away, `limit_ms` has passed (-1: none), or
  // `interrupted` is readable.
  void drain(int interrupted, int limit_ms);

 private:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

  int fd_;
  UniqueFd own_;
  std::string message_, waiting_;
  bool gone_ = false;
  absl::Status status_;
  std::ostream stream_{this};
};

// Writes `text` as far as the reader takes it within `limit_ms`.
void write_within(int fd, std::string_view text, int limit_ms);

}  // namespace paceline::cli
