#include "runtime/checkpoint/file_header.h"

#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace paceline::checkpoint {

absl::StatusOr<SafetensorsHeader> read_header(FileReader& file) {
  std::vector<std::byte> begin(kLengthBytes);
  PL_ASSIGN_OR_RETURN(const std::size_t got, file.read(begin));
  begin.resize(got);
  const std::uint64_t length = got == kLengthBytes ? ByteReader(begin).u64() : 0;
  // What is too long is for parse_header() to refuse.
  if (length > 0 && length <= kMaxHeaderBytes && length <= file.size() - kLengthBytes) {
    begin.resize(kLengthBytes + static_cast<std::size_t>(length));
    PL_ASSIGN_OR_RETURN(const std::size_t more, file.read(std::span(begin).subspan(kLengthBytes)));
    begin.resize(kLengthBytes + more);
  }
  return parse_header(begin, file.size());
}

}  // namespace paceline::checkpoint
