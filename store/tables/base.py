"""The base of all tables: constraint names that migrations can rely on, and the column types used everywhere."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from sqlalchemy import BigInteger, DateTime, Enum, MetaData, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

CreatedAt = Annotated[datetime, mapped_column(server_default=func.now())]
"""When the row's transaction began, by the database's clock."""

_NAME_LENGTH = 16  # of a value of any enumeration; the longest has 10 letters


def text_enum(kind: type[StrEnum], name: str) -> Enum:
    """A column type for the values of an enumeration, kept as text with a check of this name."""
    return Enum(
        kind,
        native_enum=False,
        length=_NAME_LENGTH,
        create_constraint=True,
        name=name,
        values_callable=lambda members: [member.value for member in members],
    )


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        int: BigInteger(),
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB(none_as_null=True),
        dict[str, str]: JSONB(none_as_null=True),
        list[str]: JSONB(none_as_null=True),
        list[dict[str, Any]]: JSONB(none_as_null=True),
    }
