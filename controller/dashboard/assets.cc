#include "controller/dashboard/assets.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/crc32c.h"
#include "base/hex.h"
#include "base/text.h"

namespace paceline::dashboard {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".json", "application/json"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".webmanifest", "application/manifest+json"},
}};

constexpr char kNoPage[] =
    "This paceline was built without its dashboard's page, which needs Node.js and npm.\n"
    "Install them and build again (cmake --preset release; ninja -C build/release), or use a package that "
    "has "
    "it.\nThe API is here all the same: docs/dashboard-api.md.\n";

std::string_view type_of(std::string_view path) {
  if (path == "/") return kTypes[0].second;
  for (const auto& [end, type] : kTypes) {
    if (path.ends_with(end)) return type;
  }
  return "application/octet-stream";
}

// Empty where the bytes are damaged.
std::string decompressed(std::string_view gzip) {
  std::string text;
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return text;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  std::array<char, 16 << 10> buffer;
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    result = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END ? text : std::string();
}

const Asset* find(std::span<const Asset> assets, std::string_view path) {
  const auto found = std::ranges::find(assets, path, &Asset::path);
  return found == assets.end() ? nullptr : &*found;
}

}  // namespace

web::HttpAnswer asset_answer(std::span<const Asset> assets, const web::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD")
    return {
        .status = 405, .body = "only GET and HEAD are served here\n", .headers = {{"Allow", "GET, HEAD"}}};
  const Asset* asset = find(assets, request.path);
  const bool is_file = request.path.starts_with("/assets/");
  if (asset == nullptr && !is_file) asset = find(assets, "/");
  if (asset == nullptr) return {.status = 404, .body = is_file ? "there is no such file\n" : kNoPage};
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(asset->gzip)));
  const std::string tag = str_cat("\"", hex({reinterpret_cast<const char*>(&sum), sizeof(sum)}), "\"");
  web::HttpAnswer answer;
  // A bundler's file has its sum in its name.
  answer.headers = {{"Cache-Control", is_file ? "public, max-age=31536000, immutable" : "no-cache"},
                    {"ETag", tag},
                    {"Vary", "Accept-Encoding"}};
  answer.content_type = type_of(asset->path);
  if (request.header("if-none-match") == tag) {
    answer.status = 304;
  } else if (request.header("accept-encoding").find("gzip") != std::string::npos) {
    answer.body = asset->gzip;
    answer.headers.emplace_back("Content-Encoding", "gzip");
  } else {
    answer.body = decompressed(asset->gzip);
  }
  return answer;
}

}  // namespace paceline::dashboard
