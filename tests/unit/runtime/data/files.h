#pragma once

// Temporary files for the tests of readers.

#include <stdlib.h>
#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace paceline::data {

// A folder that is removed at the end of its scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "paceline-data-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string write(std::string_view name, std::string_view content) const {
    const std::string path = (path_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::filesystem::path path_;
};

inline std::string gzip(std::string_view content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(content.size() + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// An IDX file of unsigned bytes.
inline std::string idx(std::initializer_list<std::uint32_t> dims, std::string_view data) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const std::uint32_t d : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(d >> shift & 255);
  }
  return file.append(data);
}

// A .npy file, version 1.
inline std::string npy(std::string_view type, std::string_view shape, std::string_view data) {
  std::string header = "{'descr': '";
  header.append(type).append("', 'fortran_order': False, 'shape': ").append(shape).append(", }");
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ').append("\n");
  std::string file = "\x93NUMPY";
  file += {'\x01', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  return file.append(header).append(data);
}

template <typename T>
std::string raw(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

}  // namespace paceline::data
