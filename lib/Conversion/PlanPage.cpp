//===- PlanPage.cpp - a plan as one page ----------------------------------===//

#include "PlanPicture.h"

#include "genrec/Conversion/Explain.h"
#include "genrec/Conversion/PlanJson.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace genrec;
using llvm::StringRef;
namespace json = llvm::json;

/// How the page looks.
static constexpr StringRef kStyle = R"css(
body { font: 14px/1.4 sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 1.6em; }
table { border-collapse: collapse; } th { position: sticky; top: 2.6em; background: #fff; }
td, th { padding: 2px 10px; text-align: left; vertical-align: top; border-bottom: 1px solid #eee; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } td.from { color: #666; max-width: 60em; }
.picture { overflow: auto; max-height: 40em; border: 1px solid #ddd; padding: 4px; }
#bar { position: sticky; top: 0; background: #fff; padding: 6px 0; z-index: 1; }
#search { width: 24em; font-size: 1em; padding: 3px; } .hidden { display: none; } .node.dim { opacity: 0.15; }
)css";

/// Shows rows and boxes that hold every word searched for, and sorts tables by a click on a head.
static constexpr StringRef kScript = R"js(
const search = document.getElementById('search');
search.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  for (const row of document.querySelectorAll('tbody tr')) row.classList.toggle('hidden', !has(row.textContent));
  for (const node of document.querySelectorAll('.node')) node.classList.toggle('dim', !has(node.textContent));
});
for (const head of document.querySelectorAll('th')) head.addEventListener('click', () => {
  const body = head.closest('table').tBodies[0], column = head.cellIndex, isNumber = head.classList.contains('n');
  const value = (row) => { const text = row.cells[column].textContent; return isNumber ? -parseFloat(text) || 0 : text; };
  [...body.rows].sort((a, b) => value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0).forEach((row) => body.append(row));
});
)js";

namespace {
struct Column {
  StringRef title, key;
  double scale = 0; ///< of a number; 0: text
  StringRef format = "";
};

class PlanPage {
public:
  PlanPage(const json::Object &plan, llvm::raw_ostream &os) : plan(plan), os(os) {}
  void print();

private:
  void table(const std::vector<const json::Object *> &rows, llvm::ArrayRef<Column> columns);
  void list(const json::Object &object, StringRef key, StringRef title);
  void program(const json::Object &program);

  const json::Object &plan;
  llvm::raw_ostream &os;
};
} // namespace

void PlanPage::table(const std::vector<const json::Object *> &rows,
                     llvm::ArrayRef<Column> columns) {
  os << "<table><thead><tr>";
  for (const Column &column : columns)
    os << "<th" << (column.scale != 0 ? " class=\"n\"" : "") << ">" << escapeHtml(column.title)
       << "</th>";
  os << "</tr></thead><tbody>\n";
  for (const json::Object *row : rows) {
    os << "<tr>";
    for (const Column &column : columns) {
      if (column.scale != 0) {
        std::string text;
        if (std::optional<double> number = row->getNumber(column.key)) {
          llvm::raw_string_ostream stream(text);
          stream << llvm::format(column.format.data(), *number * column.scale);
        }
        os << "<td class=\"n\">" << text << "</td>";
      } else {
        os << (column.key == "from" ? "<td class=\"from\">" : "<td>")
           << escapeHtml(row->getString(column.key).value_or("")) << "</td>";
      }
    }
    os << "</tr>\n";
  }
  os << "</tbody></table>\n";
}

void PlanPage::list(const json::Object &object, StringRef key, StringRef title) {
  const json::Array *lines = object.getArray(key);
  if (!lines || lines->empty())
    return;
  os << "<h3>" << title << "</h3>\n<table><tbody>\n";
  for (const json::Value &line : *lines)
    os << "<tr><td>" << escapeHtml(line.getAsString().value_or("")) << "</td></tr>\n";
  os << "</tbody></table>\n";
}

void PlanPage::program(const json::Object &program) {
  StringRef name = program.getString("name").value_or("");
  os << "<h2>program " << escapeHtml(name) << "</h2>\n<p>"
     << program.getInteger("row_kernels").value_or(0) << " row kernels, "
     << program.getInteger("launches").value_or(0) << " launches";
  if (std::optional<double> time = program.getNumber("predicted_milliseconds"))
    os << llvm::format(", at least %.3f ms per step", *time);
  os << "</p>\n";
  std::vector<const json::Object *> ops = getObjects(program, "ops");
  llvm::stable_sort(ops, [](const json::Object *a, const json::Object *b) {
    auto weight = [](const json::Object *op) {
      return op->getNumber("predicted_milliseconds")
          .value_or(op->getNumber("bytes").value_or(0) +
                    op->getNumber("gathered_bytes").value_or(0));
    };
    return weight(a) > weight(b);
  });
  table(ops, {{"op", "name"},
              {"stage", "stage"},
              {"over", "domain"},
              {"rows", "rows", 1, "%.0f"},
              {"at least ms", "predicted_milliseconds", 1, "%.4f"},
              {"by", "bound"},
              {"MB", "bytes", 1e-6, "%.3f"},
              {"MB picked", "gathered_bytes", 1e-6, "%.3f"},
              {"MFLOP", "flops", 1e-6, "%.3f"},
              {"MFLOP in products", "product_flops", 1e-6, "%.3f"},
              {"B/row", "bytes_per_row", 1, "%.0f"},
              {"FLOP/row", "flops_per_row", 1, "%.0f"},
              {"from", "from"}});
  list(program, "decisions", "decisions");
  os << "<h3>memory</h3>\n";
  table(getObjects(program, "memory"),
        {{"part", "part"}, {"MB", "bytes", 1e-6, "%.1f"}, {"note", "note"}});
  os << "<h3>buffers</h3>\n";
  table(getObjects(program, "buffers"), {{"buffer", "name"},
                                         {"MB", "bytes", 1e-6, "%.3f"},
                                         {"first op", "first", 1, "%.0f"},
                                         {"last op", "last", 1, "%.0f"}});
  if (const json::Object *graph = program.getObject("graph")) {
    os << "<h3>graph after</h3>\n<div class=\"picture\">";
    drawGraph(*graph, os);
    os << "</div>\n";
  }
}

void PlanPage::print() {
  std::string model = escapeHtml(plan.getString("model").value_or("model"));
  os << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" << model
     << "</title><style>" << kStyle << "</style></head><body>\n<h1>" << model << "</h1>\n";
  os << "<div id=\"bar\"><input id=\"search\" type=\"search\" placeholder=\"search kernels, ops, "
        "columns, lines\"></div>\n";
  os << "<h2>domains</h2>\n<div class=\"picture\">";
  drawDomains(plan, os);
  os << "</div>\n";
  list(plan, "decisions", "decisions");
  os << "<h2>tables</h2>\n";
  table(getObjects(plan, "tables"), {{"table", "name"},
                                     {"dim", "dim", 1, "%.0f"},
                                     {"optimizer", "optimizer"},
                                     {"bytes per row", "bytes_per_row", 1, "%.0f"},
                                     {"in", "in"},
                                     {"rules", "rules"},
                                     {"where", "where"}});
  os << "<h2>columns</h2>\n";
  table(getObjects(plan, "columns"),
        {{"column", "column"}, {"of", "domain"}, {"feeds table", "table"}});
  if (const json::Object *graphs = plan.getObject("graphs_before"))
    for (const auto &[name, graph] : *graphs) {
      os << "<h2>graph before (" << escapeHtml(name) << ")</h2>\n<div class=\"picture\">";
      if (const json::Object *object = graph.getAsObject())
        drawGraph(*object, os);
      os << "</div>\n";
    }
  for (const json::Object *entry : getObjects(plan, "programs"))
    program(*entry);
  os << "<script>" << kScript << "</script>\n</body></html>\n";
}

void genrec::printPlanAsHtml(const json::Object &plan, llvm::raw_ostream &os) {
  PlanPage(plan, os).print();
}
