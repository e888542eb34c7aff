#pragma once

// Which requests are looked at at all, before anybody's rights: those that our own page, or a program that
// knows what it does, can make. Pure.
//
//   Host        must be ours: a site whose name is turned to this machine (DNS rebinding) has its own.
//   Origin, Sec-Fetch-Site   where there are some must be of our own page: no other site's, and none of
//               another port's, to which browsers send our cookies all the same.
//   CSRF word   every request that may change something proves that it can read our answers.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/web/http_message.h"

namespace paceline::dashboard {

inline constexpr char kCsrfHeader[] = "x-paceline-csrf";

struct Refusal {
  int status = 0;
  std::string code, message, help;
  bool operator==(const Refusal&) const = default;
};

// `hosts`: "127.0.0.1:8080", as a Host header has them. Nothing: it may go on.
std::optional<Refusal> check_origin(const web::HttpRequest& request, const std::vector<std::string>& hosts);

// The request is of a session with this word.
std::optional<Refusal> check_csrf(const web::HttpRequest& request, std::string_view csrf);

// The hosts by which a server at this port of the loopback device is called.
std::vector<std::string> loopback_hosts(int port);

}  // namespace paceline::dashboard
