#pragma once

// Which requests are looked at at all, before anybody's rights: those that our own page, or a program that
// knows what it does, can make. Pure.
//
//   Host        must be ours: a site whose name is turned to this machine (DNS rebinding) has its own.
//   Origin, Sec-Fetch-Site   where there are some must be of our own page: no other site's, and none of
//               another port's, to which browsers send our cookies all the same.
//   CSRF word   every request of a session proves that it comes from our own page: the cookie alone does not,
//               since browsers send it to other users' servers at other ports, too (sessions.h).

#include <optional>
#include <string>
#include <vector>

#include "controller/web/http_message.h"

namespace paceline::dashboard {

inline constexpr char kCsrfHeader[] = "x-paceline-csrf";
inline constexpr char kCsrfParameter[] = "csrf";

struct Refusal {
  int status = 0;
  std::string code, message, help;
  bool operator==(const Refusal&) const = default;
};

// `hosts`: "127.0.0.1:8080", as a Host header has them; empty: of a server that is called by any name, and
// knows no cookies, so that nobody gains by another site's page. Nothing: it may go on.
std::optional<Refusal> check_origin(const web::HttpRequest& request, const std::vector<std::string>& hosts);

// The word that a request brings; empty: none. It is the header's. `of_stream`: the query's will do, because
// a browser's EventSource sends no header of ours.
const std::string& csrf_word(const web::HttpRequest& request, bool of_stream);

// The hosts by which a server at this port of 127.0.0.1 is called. The same port of [::1] may be somebody
// else's.
std::vector<std::string> loopback_hosts(int port);

}  // namespace paceline::dashboard
