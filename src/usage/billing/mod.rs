//! Billing: the month so far, its forecast, the use of budgets, and an app's monthly statement.

use super::days::{Days, Month};
use super::forecast::{first_day, forecast};
use super::report::{MAX_ROWS, Names, ReportError, key_label, known_cost, usage_sums};
use crate::api::console::{Billing, BudgetLine, Dimension, Forecast, Statement, StatementLine};
use crate::clock::Time;
use crate::money::{NanoUsd, threshold, used_percent};
use crate::storage::{
    BudgetHolder, BudgetRow, Error, PossiblyDeletedApp, Store, SubjectMonth, UsageCounts, UsageQuery,
    UsageSum,
};

/// The billing of the month of `now` so far. Blocking.
pub fn billing(store: &Store, now: Time) -> Result<Billing, Error> {
    let month = Month::of(now);
    let so_far = counts(store, month.days())?;
    Ok(Billing {
        month: month.to_string(),
        ends_at: month.end().rfc3339(),
        month_to_date: usage_sums(so_far, false),
        forecast: expected(store, so_far, now)?,
        budgets: budgets(store, now)?,
    })
}

fn counts(store: &Store, days: Days) -> Result<UsageCounts, Error> {
    let sums = store.usage(&UsageQuery::days(days.first, days.last))?;
    Ok(sums.first().map(|sum| sum.counts).unwrap_or_default())
}

/// The forecast; `None` if nothing was ever used, or only at unknown prices.
fn expected(store: &Store, so_far: UsageCounts, now: Time) -> Result<Option<Forecast>, Error> {
    let Some(first_usage_day) = store.first_usage_day()? else { return Ok(None) };
    let first = first_day(first_usage_day, now);
    let recent = counts(store, Days { first, last: now.utc_day() })?;
    let known = known_cost(so_far).zip(known_cost(recent));
    Ok(known.map(|(month_to_date, recent)| forecast(month_to_date, recent, first, now)))
}

/// Every budget in force, the most used first.
fn budgets(store: &Store, now: Time) -> Result<Vec<BudgetLine>, Error> {
    let budgets = store.budgets(now)?;
    let month = now.utc_month();
    let of = |row: &BudgetRow| SubjectMonth { subject: row.id.clone(), month };
    let spent = store.spent(&budgets.iter().map(of).collect::<Vec<_>>())?;
    let mut lines: Vec<BudgetLine> =
        budgets.into_iter().zip(spent).map(|(row, spent)| budget_line(row, spent)).collect();
    lines.sort_by(|a, b| b.used_percent.total_cmp(&a.used_percent).then_with(|| a.id.cmp(&b.id)));
    Ok(lines)
}

fn budget_line(row: BudgetRow, spent: NanoUsd) -> BudgetLine {
    BudgetLine {
        name: match &row.holder {
            BudgetHolder::App(name) => name.clone(),
            BudgetHolder::Key(key) => key_label(key),
        },
        id: row.id,
        app_id: row.app_id,
        budget_usd: row.budget.usd(),
        spent_usd: spent.usd(),
        used_percent: used_percent(spent, row.budget),
        threshold: threshold(spent, row.budget),
    }
}

/// The statement of a month of the app with this id, which may be deleted. Blocking. [`Error::NotFound`] if there never
/// was such an app.
pub fn statement(store: &Store, app_id: &str, month: Month, now: Time) -> Result<Statement, ReportError> {
    let PossiblyDeletedApp { id, name, budget, .. } = store.app_even_if_deleted(app_id)?;
    let Days { first, last } = month.days();
    let query = UsageQuery {
        by: vec![Dimension::Service, Dimension::Key, Dimension::Model],
        app_id: Some(id.clone()),
        max_rows: MAX_ROWS + 1,
        ..UsageQuery::days(first, last)
    };
    let sums = store.usage(&query)?;
    if sums.len() > MAX_ROWS {
        return Err(ReportError::TooLong);
    }
    let total = sums.iter().fold(UsageCounts::default(), |total, sum| total.plus(sum.counts));
    let names = Names::of(store, &sums)?;
    let mut lines: Vec<StatementLine> = sums.into_iter().map(|sum| statement_line(sum, &names)).collect();
    lines.sort_by_cached_key(|line| [&line.service, &line.key, &line.key_id, &line.model].map(Clone::clone));
    Ok(Statement {
        app_id: id,
        app: name,
        month: month.to_string(),
        is_preliminary: now < month.end(),
        created_at: now.rfc3339(),
        budget_usd: budget.map(NanoUsd::usd),
        lines,
        totals: usage_sums(total, false),
    })
}

fn statement_line(sum: UsageSum, names: &Names) -> StatementLine {
    let key_id = sum.key_id.unwrap_or_default();
    StatementLine {
        service: sum.service.unwrap_or_default(),
        key: names.key(&key_id).unwrap_or_else(|| key_id.clone()),
        key_id,
        model: sum.model.unwrap_or_default(),
        sums: usage_sums(sum.counts, true),
    }
}

#[cfg(test)]
mod tests;
