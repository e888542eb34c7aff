#include "runtime/checkpoint/parts.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/status.h"

namespace paceline::checkpoint {

namespace {
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // before each, who waits is asked
constexpr std::size_t kHeaderLengthBytes = 8;
}  // namespace

absl::Status PartWriter::append(std::span<const std::byte> bytes) {
  PL_RETURN_IF_ERROR(file_->append(bytes));
  entry_.bytes += bytes.size();
  entry_.crc32c = crc32c(bytes, entry_.crc32c);
  return absl::OkStatus();
}

absl::StatusOr<FileEntry> PartWriter::finish() {
  PL_RETURN_IF_ERROR(file_->finish());
  return entry_;
}

absl::Status PartReader::read(std::span<std::byte> out) {
  if (out.size() > left()) {
    return absl::DataLossError(str_cat(entry_.name, ": ", out.size(), " bytes are wanted at byte ", at_,
                                       ", the manifest says that it has ", entry_.bytes));
  }
  PL_ASSIGN_OR_RETURN(const std::size_t got, file_->read(out));
  at_ += got;
  if (got < out.size()) {
    return absl::DataLossError(str_cat(entry_.name, ": ", at_, " bytes, the manifest says ", entry_.bytes));
  }
  crc32c_ = crc32c(out, crc32c_);
  return left() == 0 ? check_end() : absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> PartReader::read_rest(const GoOn& go_on) {
  if (file_->size() != entry_.bytes) {
    return absl::DataLossError(
        str_cat(entry_.name, ": ", file_->size(), " bytes, the manifest says ", entry_.bytes));
  }
  std::vector<std::byte> rest;
  try {
    rest.resize(static_cast<std::size_t>(left()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(str_cat("no memory for the ", left(), " bytes of ", entry_.name));
  }
  std::size_t at = 0;
  do {
    if (go_on != nullptr) PL_RETURN_IF_ERROR(go_on());
    const std::size_t next = std::min(rest.size() - at, kPieceBytes);
    PL_RETURN_IF_ERROR(read(std::span(rest).subspan(at, next)));
    at += next;
  } while (at < rest.size());
  return rest;
}

absl::Status PartReader::check_end() {
  std::array<std::byte, 1> more;
  PL_ASSIGN_OR_RETURN(const std::size_t got, file_->read(more));
  if (got > 0) {
    return absl::DataLossError(
        str_cat(entry_.name, ": more than the ", entry_.bytes, " bytes that the manifest says"));
  }
  if (crc32c_ == entry_.crc32c) return absl::OkStatus();
  return absl::DataLossError(
      str_cat(entry_.name, ": its checksum isn't the manifest's: the file was altered or damaged"));
}

absl::Status check_part(PartReader& part, const GoOn& go_on) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(part.left(), kPieceBytes)));
  do {
    if (go_on != nullptr) PL_RETURN_IF_ERROR(go_on());
    const std::size_t next = static_cast<std::size_t>(std::min<std::uint64_t>(part.left(), buffer.size()));
    PL_RETURN_IF_ERROR(part.read(std::span(buffer).first(next)));
  } while (part.left() > 0);
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsHeader> read_header(PartReader& part) {
  std::vector<std::byte> begin(kHeaderLengthBytes);
  PL_RETURN_IF_ERROR(part.read(begin));
  const std::uint64_t length = ByteReader(begin).u64();
  // What is too long for the file is for parse_header() to refuse.
  if (length <= kMaxHeaderBytes && length <= part.left()) {
    begin.resize(begin.size() + static_cast<std::size_t>(length));
    PL_RETURN_IF_ERROR(part.read(std::span(begin).subspan(kHeaderLengthBytes)));
  }
  auto header = parse_header(begin, part.entry().bytes);
  if (!header.ok()) return with_context(header.status(), part.entry().name);
  return header;
}

}  // namespace paceline::checkpoint
