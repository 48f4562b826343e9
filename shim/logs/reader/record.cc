#include "logs/reader/record.h"

#include <utility>

namespace ration::logs {

using nlohmann::json;

// Receives the parser's values. Plain values of the record go into its fields; others are built as JSON first.
class Record::Reading {
 public:
  explicit Reading(Record &record) : record_(record) {}

  bool key(json::string_t &name) {
    if (open_.size() == 1) {
      field_ = &record_.add(name);
    } else {
      name_ = name;
    }
    return true;
  }
  bool number_unsigned(json::number_unsigned_t number) {
    if (is_plain()) {
      field_->kind = Kind::number;
      field_->number = number;
      return true;
    }
    return put(number) != nullptr;
  }
  bool string(json::string_t &text) {
    if (is_plain()) {
      field_->kind = Kind::text;
      field_->text = text;
      return true;
    }
    return put(std::move(text)) != nullptr;
  }
  bool null() { return put(nullptr) != nullptr; }
  bool boolean(bool is_set) { return put(is_set) != nullptr; }
  bool number_integer(json::number_integer_t number) { return put(number) != nullptr; }
  bool number_float(json::number_float_t number, const json::string_t &) { return put(number) != nullptr; }
  static bool binary(json::binary_t &) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  static bool parse_error(std::size_t, const std::string &, const json::exception &) { return false; }

 private:
  [[nodiscard]] bool is_plain() const { return open_.size() == 1; }

  // Puts a value at the current position and returns it; nullptr: the line is not an object.
  json *put(json value) {
    if (open_.empty()) {
      return nullptr;
    }
    if (is_plain()) {
      field_->value = std::move(value);
      return &field_->value;
    }
    json &around = *open_.back();
    if (around.is_array()) {
      around.push_back(std::move(value));
      return &around.back();
    }
    json &within = around[name_];
    within = std::move(value);
    return &within;
  }

  bool open(json value) {
    const bool is_record = open_.empty() && value.is_object();
    json *const at = is_record ? nullptr : put(std::move(value));
    open_.push_back(at);
    return is_record || at != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Record &record_;
  Field *field_ = nullptr;
  std::vector<json *> open_;  // containers that are not closed yet; the first is the record
  std::string name_;
};

Record::Record(const json &object) {
  for (const auto &[key, value] : object.items()) {
    Field &field = add(key);
    if (value.is_number_unsigned()) {
      field.kind = Kind::number;
      field.number = value.get<std::uint64_t>();
    } else if (value.is_string()) {
      field.kind = Kind::text;
      field.text = value.get<std::string>();
    } else {
      field.value = value;
    }
  }
}

bool Record::read(std::string_view line) {
  count_ = 0;
  type = Type::other;
  Reading reading(*this);
  const bool is_object = json::sax_parse(line.begin(), line.end(), &reading);
  count_ = is_object ? count_ : 0;
  return is_object;
}

json Record::value(std::string_view key) const {
  const Field *found = find(key);
  return found == nullptr              ? json()
         : found->kind == Kind::number ? json(found->number)
         : found->kind == Kind::text   ? json(found->text)
                                       : found->value;
}

Record::Field &Record::add(std::string_view key) {
  if (count_ == fields_.size()) {
    fields_.emplace_back();
  }
  Field &field = fields_[count_++];
  field.key = key;
  field.kind = Kind::other;
  return field;
}

}  // namespace ration::logs
