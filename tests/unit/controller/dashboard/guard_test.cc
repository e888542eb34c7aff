#include "controller/dashboard/guard.h"

#include <gtest/gtest.h>

namespace paceline::dashboard {
namespace {

web::HttpRequest request(const std::string& method, const std::string& path,
                         web::HttpRequest::Fields headers) {
  return {.method = method, .path = path, .headers = std::move(headers)};
}

int status_of(const std::optional<Refusal>& refusal) {
  return refusal ? refusal->status : 0;
}

TEST(GuardTest, HostsMustBeOurs) {
  const auto hosts = loopback_hosts(8080);
  for (const char* host : {"127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"})
    EXPECT_EQ(status_of(check_origin(request("GET", "/", {{"host", host}}), hosts)), 0) << host;
  for (const char* host : {"", "[::1]:8080", "127.0.0.1", "127.0.0.1:80", "evil.example:8080",
                           "localhost:8080.evil.example", "127.0.0.1:8080, evil.example", "x@127.0.0.1:8080"})
    EXPECT_EQ(status_of(check_origin(request("GET", "/", {{"host", host}}), hosts)), 421) << host;
  EXPECT_EQ(status_of(check_origin(request("GET", "/", {}), hosts)), 421);
  EXPECT_EQ(status_of(check_origin(request("GET", "/", {{"host", "localhost"}}), loopback_hosts(80))), 0);
}

TEST(GuardTest, OriginsMustBeOurs) {
  const auto hosts = loopback_hosts(8080);
  const auto check = [&](const char* origin) {
    return status_of(check_origin(
        request("POST", "/api/v1/session", {{"host", "localhost:8080"}, {"origin", origin}}), hosts));
  };
  EXPECT_EQ(check("http://localhost:8080"), 0);
  EXPECT_EQ(check("http://127.0.0.1:8080"), 0);
  for (const char* origin :
       {"null", "http://localhost:8081", "http://localhost", "http://evil.example:8080", "localhost:8080"})
    EXPECT_EQ(check(origin), 403) << origin;
}

TEST(GuardTest, OtherSitesMayOnlyLinkToThePage) {
  const auto hosts = loopback_hosts(8080);
  const auto check = [&](const char* method, const char* path, const char* site, const char* mode) {
    return status_of(check_origin(
        request(method, path,
                {{"host", "localhost:8080"}, {"sec-fetch-site", site}, {"sec-fetch-mode", mode}}),
        hosts));
  };
  EXPECT_EQ(check("GET", "/api/v1/jobs", "same-origin", "cors"), 0);
  EXPECT_EQ(check("GET", "/", "none", "navigate"), 0);
  EXPECT_EQ(check("GET", "/", "cross-site", "navigate"), 0);
  EXPECT_EQ(check("GET", "/", "cross-site", "no-cors"), 403);
  EXPECT_EQ(check("GET", "/api/v1/jobs", "same-site", "cors"), 403);
  EXPECT_EQ(check("GET", "/api/v1/jobs", "cross-site", "navigate"), 403);
  EXPECT_EQ(check("POST", "/", "cross-site", "navigate"), 403);
}

TEST(GuardTest, OnlyStreamsBringTheWordInTheirQuery) {
  web::HttpRequest asked = request("GET", "/x", {});
  EXPECT_EQ(csrf_word(asked, true), "");
  asked.query = {{kCsrfParameter, "of the query"}};
  EXPECT_EQ(csrf_word(asked, true), "of the query");
  EXPECT_EQ(csrf_word(asked, false), "");
  asked.headers = {{kCsrfHeader, "of the header"}};
  EXPECT_EQ(csrf_word(asked, true), "of the header");
  EXPECT_EQ(csrf_word(asked, false), "of the header");
}

}  // namespace
}  // namespace paceline::dashboard
