#include "controller/dashboard/assets.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>

namespace paceline::dashboard {
namespace {

std::string gzip(std::string text) {
  std::string packed(text.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class AssetsTest : public ::testing::Test {
 protected:
  web::HttpAnswer get(const std::string& path, web::HttpRequest::Fields headers = {}) const {
    return asset_answer(assets_, {.method = "GET", .path = path, .headers = std::move(headers)});
  }
  static std::string header(const web::HttpAnswer& answer, std::string_view name) {
    const auto found = std::ranges::find(answer.headers, name, [](const auto& each) { return each.first; });
    return found == answer.headers.end() ? "" : found->second;
  }
  const std::string page_ = gzip("<title>Paceline</title>"), script_ = gzip("let x = 1;");
  const std::array<Asset, 2> assets_ = {Asset{"/", page_}, {"/assets/index-4f.js", script_}};
};

TEST_F(AssetsTest, FilesAreCompressedForThoseWhoTakeIt) {
  const web::HttpAnswer packed = get("/", {{"accept-encoding", "gzip, br"}});
  EXPECT_EQ(packed.body, page_);
  EXPECT_EQ(header(packed, "Content-Encoding"), "gzip");
  EXPECT_EQ(packed.content_type, "text/html; charset=utf-8");
  const web::HttpAnswer plain = get("/");
  EXPECT_EQ(plain.body, "<title>Paceline</title>");
  EXPECT_EQ(header(plain, "Content-Encoding"), "");
}

TEST_F(AssetsTest, FilesWithASumInTheirNameAreKept) {
  EXPECT_EQ(get("/assets/index-4f.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(header(get("/assets/index-4f.js"), "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(header(get("/"), "Cache-Control"), "no-cache");
}

TEST_F(AssetsTest, UnchangedFilesAreNotSentAgain) {
  const std::string tag = header(get("/"), "ETag");
  EXPECT_EQ(get("/", {{"if-none-match", tag}}).status, 304);
  EXPECT_EQ(get("/", {{"if-none-match", "\"other\""}}).status, 200);
}

TEST_F(AssetsTest, ViewsOfThePageAreThePage) {
  EXPECT_EQ(get("/jobs/default/digits").body, "<title>Paceline</title>");
  EXPECT_EQ(get("/assets/none.js").status, 404);
  EXPECT_EQ(asset_answer(assets_, {.method = "POST", .path = "/"}).status, 405);
}

TEST_F(AssetsTest, BuildsWithoutThePageSayHowToGetIt) {
  const web::HttpAnswer answer = asset_answer({}, {.method = "GET", .path = "/"});
  EXPECT_EQ(answer.status, 404);
  EXPECT_FALSE(answer.body.empty());
}

TEST_F(AssetsTest, DamagedFilesAreEmpty) {
  const std::array<Asset, 1> damaged = {Asset{"/", "no gzip"}};
  EXPECT_EQ(asset_answer(damaged, {.method = "GET", .path = "/"}).body, "");
}

}  // namespace
}  // namespace paceline::dashboard
