#include "runtime/data/formats.h"

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace paceline::data {

namespace {

struct Foreign {
  std::string_view begin;  // in lower case
  std::string_view what;
};
constexpr Foreign kForeign[] = {
    {"version https://git-lfs", "a pointer of Git LFS: get the file itself (git lfs pull)"},
    {"pk\x03\x04", "a zip archive, as .npz files are too: unpack it"},
    {"bzh91ay&sy", "packed by bzip2: unpack it (bunzip2)"},
    {"\xfd"
     "7zxz",
     "packed by xz: unpack it (unxz)"},
    {"\x28\xb5\x2f\xfd", "packed by zstd: unpack it (unzstd)"},
    {"\x89hdf\r\n", "an HDF5 file: write the arrays to .npy files"},
};
constexpr Foreign kPages[] = {{"<!doctype", ""}, {"<html", ""}, {"<?xml", ""}};
constexpr std::size_t kTarMagicAt = 257;

}  // namespace

absl::Status check_is_data(std::span<const std::byte> file, bool text) {
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  std::string begin(all.substr(0, 32));
  std::ranges::transform(begin, begin.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto begins = [&](const Foreign& f) { return begin.starts_with(f.begin); };
  std::string_view what;
  if (const auto* const found = std::ranges::find_if(kForeign, begins); found != std::end(kForeign)) {
    what = found->what;
  } else if (!text && std::ranges::any_of(kPages, begins)) {
    what = "a web page: the download gave that instead of the data; download the file again";
  } else if (all.size() > 512 && all.substr(kTarMagicAt).starts_with("ustar")) {
    what = "a tar archive: unpack it (tar -x)";
  }
  if (what.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(str_cat("not data, but ", what));
}

std::string dims_text(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += str_cat(i == 0 ? "" : ", ", dims[i]);
  return text + "]";
}

absl::Status check_array_bytes(const FileArray& array, std::uint64_t element) {
  std::uint64_t bytes = element;
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    if (array.dims[d] == 0) return absl::InvalidArgumentError(str_cat("dimension ", d, " is 0"));
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(array.dims[d]), &bytes))
      bytes = std::numeric_limits<std::uint64_t>::max() / 2;
  }
  if (bytes == array.data.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      str_cat("the header says ", dims_text(array.dims), ", ", bytes, " bytes, but ", array.data.size(),
              " follow it", bytes > array.data.size() ? ": the file is cut; copy or download it again" : ""));
}

}  // namespace paceline::data
