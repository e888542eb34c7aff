#include "controller/web/router.h"

#include <algorithm>

namespace paceline::web {

namespace {

// "/a/b/": "a", "b", "".
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  if (path.starts_with('/')) path.remove_prefix(1);
  for (;;) {
    const std::size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

bool is_parameter(std::string_view part) {
  return part.size() > 2 && part.front() == '{' && part.back() == '}';
}

std::optional<HttpRequest::Fields> parameters(const std::vector<std::string>& pattern,
                                              const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  HttpRequest::Fields found;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (is_parameter(pattern[i]) && !path[i].empty()) {
      found[pattern[i].substr(1, pattern[i].size() - 2)] = path[i];
    } else if (pattern[i] != path[i]) {
      return std::nullopt;
    }
  }
  return found;
}

}  // namespace

std::size_t Router::add(std::string method, std::string_view pattern) {
  routes_.push_back({std::move(method), parts_of(pattern)});
  return routes_.size() - 1;
}

Router::Match Router::match(std::string_view method, std::string_view path) const {
  const std::vector<std::string> parts = parts_of(path);
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  Match match;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto found = parameters(routes_[i].parts, parts);
    if (!found) continue;
    if (routes_[i].method == wanted) {
      match.route = i;
      match.parameters = *std::move(found);
      match.allowed.clear();
      return match;
    }
    if (!std::ranges::count(match.allowed, routes_[i].method)) match.allowed.push_back(routes_[i].method);
  }
  return match;
}

}  // namespace paceline::web
