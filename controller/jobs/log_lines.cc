#include "controller/jobs/log_lines.h"

#include "controller/cluster/kube/times.h"

namespace paceline::jobs {

void LogLines::feed(std::string_view bytes, std::string& out) {
  held_.append(bytes);
  std::size_t begin = 0, end;
  while ((end = held_.find('\n', begin)) != std::string::npos) {
    line(std::string_view(held_).substr(begin, end + 1 - begin), true, out);
    begin = end + 1;
  }
  held_.erase(0, begin);
  if (held_.size() <= kMaxHeldBytes) return;
  line(held_, false, out);
  held_.clear();
}

void LogLines::restart() {
  held_.clear();
  within_ = false;
  again_ = last_.has_value();
  seen_ = 0;
}

void LogLines::finish(std::string& out) {
  if (!held_.empty()) line(held_, false, out);
  held_.clear();
  within_ = false;
}

void LogLines::line(std::string_view text, bool whole, std::string& out) {
  const bool continues = within_;
  within_ = !whole;
  if (continues) {
    out.append(text);
    return;
  }
  const std::size_t space = text.find(' ');
  const auto time = space == std::string_view::npos ? std::nullopt : kube::parse_time(text.substr(0, space));
  if (!time) {  // not what the kubelet writes: nothing is known of it
    out.append(text);
    return;
  }
  if (again_) {
    if (*time < *last_) return;
    if (*time == *last_ && ++seen_ <= at_last_) return;
    again_ = false;
  }
  at_last_ = last_ == time ? at_last_ + 1 : 1;
  last_ = time;
  out.append(text.substr(space + 1));
}

}  // namespace paceline::jobs
