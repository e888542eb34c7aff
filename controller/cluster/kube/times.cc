#include "controller/cluster/kube/times.h"

#include <cstdio>

namespace paceline::kube {

namespace {

// `count` digits at text[at]; -1 where there are none.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::optional<WallTime> parse_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() <= kShape.size()) return std::nullopt;
  for (const std::size_t i : {4u, 7u, 10u, 13u, 16u}) {
    if (text[i] != kShape[i] && !(i == 10 && text[i] == 't')) return std::nullopt;
  }
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const int hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  const bool in_day = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60;
  if (year < 1970 || year > 2200 || month < 1 || day < 1 || !date.ok() || !in_day) return std::nullopt;

  std::size_t at = kShape.size();
  std::int64_t fraction = 0;
  if (text[at] == '.') {
    std::int64_t unit = 100'000'000;
    const std::size_t begin = ++at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      fraction += (text[at] - '0') * unit;
    if (at == begin) return std::nullopt;
  }
  const std::string_view zone = text.substr(at);
  int offset = 0;
  if (zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':') {
    const int hours = digits(zone, 1, 2), minutes = digits(zone, 4, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
    offset = (zone[0] == '-' ? -1 : 1) * (hours * 60 + minutes);
  } else if (zone != "Z" && zone != "z") {
    return std::nullopt;
  }
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute - offset) + std::chrono::seconds(second) +
         std::chrono::nanoseconds(fraction);
}

std::string format_seconds(WallTime time) {
  return format_micro_time(time).substr(0, std::string_view("0000-00-00T00:00:00").size()) + "Z";
}

std::string format_micro_time(WallTime time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::microseconds>(time - days));
  char text[48];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

}  // namespace paceline::kube
