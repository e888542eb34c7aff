#include "controller/cluster/kube/resources.h"

#include <algorithm>

#include "base/text.h"

namespace paceline::kube {

namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '~' || c == '.';
}

std::string encoded(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const bool dots = text == "." || text == "..";  // would be steps of the path
  std::string result;
  for (const char c : text) {
    if (is_plain(c) && !dots) {
      result += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      result += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return result;
}

}  // namespace

std::optional<Role> role_named(std::string_view text) {
  const auto same_letter = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    if (std::ranges::equal(text, std::string_view(role_name(role)), same_letter)) return role;
  }
  return std::nullopt;
}

std::string path_of(const Resource& resource, std::string_view ns, std::string_view name,
                    std::string_view subresource, const Query& query) {
  const bool core = resource.api_version.find('/') == std::string_view::npos;
  std::string path = str_cat(core ? "/api/" : "/apis/", resource.api_version);
  if (!ns.empty()) path += str_cat("/namespaces/", encoded(ns));
  path += str_cat("/", resource.plural);
  if (!name.empty()) path += str_cat("/", encoded(name));
  if (!subresource.empty()) path += str_cat("/", subresource);
  char separator = '?';
  for (const auto& [key, value] : query) {
    if (value.empty()) continue;
    path += separator;
    path += str_cat(key, "=", encoded(value));
    separator = '&';
  }
  return path;
}

}  // namespace paceline::kube
