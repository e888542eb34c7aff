#include "controller/dashboard/guard.h"

#include <algorithm>

#include "base/text.h"

namespace paceline::dashboard {

namespace {

bool changes_nothing(const web::HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return text;
}

// A link from elsewhere opens the page, and nothing else.
bool opens_the_page(const web::HttpRequest& request) {
  return changes_nothing(request) && request.header("sec-fetch-mode") == "navigate" &&
         !request.path.starts_with("/api/");
}

}  // namespace

std::optional<Refusal> check_origin(const web::HttpRequest& request, const std::vector<std::string>& hosts) {
  if (!hosts.empty() && std::ranges::count(hosts, in_small_letters(request.header("host"))) == 0) {
    return Refusal{421, "MisdirectedRequest", "the Host header names another server",
                   str_cat("ask for http://", hosts.front(), "/")};
  }
  const Refusal foreign{403, "Forbidden", "the request comes from another site's page", ""};
  if (const std::string& origin = request.header("origin"); !hosts.empty() && !origin.empty()) {
    const auto is_ours = [&](const std::string& host) {
      return origin == "http://" + host || origin == "https://" + host;
    };
    if (std::ranges::none_of(hosts, is_ours)) return foreign;
  }
  const std::string& site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none" && !opens_the_page(request)) return foreign;
  return std::nullopt;
}

const std::string& csrf_word(const web::HttpRequest& request, bool of_stream) {
  const std::string& word = request.header(kCsrfHeader);
  return word.empty() && of_stream ? request.parameter(kCsrfParameter) : word;
}

std::vector<std::string> loopback_hosts(int port) {
  const std::string end = port == 80 ? "" : str_cat(":", port);  // browsers leave HTTP's own port out
  return {"127.0.0.1" + end, "localhost" + end};
}

}  // namespace paceline::dashboard
