#include "base/status.h"
#include "runtime/data/formats.h"

namespace paceline::data {

absl::StatusOr<FileArray> parse_idx(std::span<const std::byte> file) {
  if (file.size() < 4) {
    return absl::InvalidArgumentError(
        str_cat("an IDX file begins with 4 bytes, this file has ", file.size()));
  }
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(file[i]); };
  if (byte(0) != 0 || byte(1) != 0) {
    return absl::InvalidArgumentError(
        str_cat("not an IDX file: bytes 0 and 1 are ", byte(0), " and ", byte(1), ", they must be 0"));
  }
  if (byte(2) != 8) {
    return absl::InvalidArgumentError(
        str_cat("byte 2: element type ", byte(2), " is not supported; allowed: 8 (unsigned bytes)"));
  }
  const std::uint32_t rank = byte(3);
  if (rank < 1 || rank > kMaxArrayRank) {
    return absl::InvalidArgumentError(
        str_cat("byte 3: ", rank, " dimensions; allowed: 1 to ", kMaxArrayRank));
  }
  const std::size_t header = 4 + 4 * std::size_t{rank};
  if (file.size() < header) {
    return absl::InvalidArgumentError(str_cat("the header of ", rank, " dimensions has ", header,
                                              " bytes, the file ends after ", file.size()));
  }
  FileArray array;
  for (std::size_t at = 4; at < header; at += 4) {
    array.dims.push_back(byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3));
  }
  array.data = file.subspan(header);
  PL_RETURN_IF_ERROR(check_array_bytes(array, 1));
  return array;
}

absl::StatusOr<std::int64_t> count_cifar_records(std::span<const std::byte> file) {
  const auto record = static_cast<std::size_t>(kCifarRecordBytes);
  if (file.empty() || file.size() % record != 0) {
    return absl::InvalidArgumentError(
        str_cat("a CIFAR-10 file consists of records of ", record, " bytes, ", file.size(),
                " bytes are not a multiple of that; if the file is cut, copy or download it again"));
  }
  for (std::size_t at = 0; at < file.size(); at += record) {
    if (const auto label = std::to_integer<int>(file[at]); label > 9) {
      return absl::InvalidArgumentError(str_cat("byte ", at, ": label ", label, "; allowed: 0 to 9"));
    }
  }
  return static_cast<std::int64_t>(file.size() / record);
}

}  // namespace paceline::data
